import type { FastifyInstance } from 'fastify';
import type { Metrics } from '../admin/metrics/metrics.ts';
import { createAdminServer, type Health } from '../admin/server.ts';
import { Activity } from '../admin/usage/activity.ts';
import type { UsageSources } from '../admin/usage/usage.ts';
import type { Identities } from '../config/files/identities.ts';
import type { GatewayObserver } from '../gateway/dependencies.ts';
import type { Configuration } from './configuration.ts';

/** What the admin port reports on. */
type Reported = Pick<UsageSources, 'store' | 'buckets' | 'directory'> &
  Health & {
    readonly metrics: Metrics;
  };

interface RunningAdmin {
  readonly server: FastifyInstance;
  /** Receives what the gateway does, for metrics and usage. */
  readonly observer: GatewayObserver;
  replaceIdentities(identities: Identities): void;
}

/** The admin port of a configured gateway, ready to listen. */
export function runAdmin(
  { settings, files, ...configuration }: Configuration,
  { metrics, isReady, ...reported }: Reported,
): RunningAdmin {
  const activity = new Activity();
  let { identities } = configuration;
  const server = createAdminServer({
    settings: settings.admin,
    metrics,
    health: { isReady },
    usage: {
      ...reported,
      activity,
      homeOf: (person) => identities.principals.get(person)?.account,
      writtenAt: (source, bucket, id) => files.limits.writtenAt(source, bucket, id),
    },
  });
  return {
    server,
    observer: {
      unlistedOperation: (method) => metrics.unlistedOperation(method),
      requestFinished(context, status, totalMs) {
        metrics.requestFinished(context, status, totalMs);
        activity.requestFinished(context, context.startedMs + totalMs);
      },
    },
    replaceIdentities(changed) {
      identities = changed;
    },
  };
}

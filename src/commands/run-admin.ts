import type { Logger } from 'pino';
import { Refusals } from '../admin/fleet/refusals.ts';
import { LiveLimitActions } from '../admin/limits/live.ts';
import type { Metrics } from '../admin/metrics/metrics.ts';
import { RevocationActions } from '../admin/revocations/actions.ts';
import { createAdminServer, type Health } from '../admin/server.ts';
import { Talkers } from '../admin/top/talkers.ts';
import { Activity } from '../admin/usage/activity.ts';
import { UsageBatch } from '../admin/usage/batch.ts';
import type { UsageSources } from '../admin/usage/usage.ts';
import type { Identities } from '../config/files/identities.ts';
import type { GatewayObserver } from '../gateway/dependencies.ts';
import { type PortTls, servedUrl } from '../gateway/tls/server.ts';
import { judgingIdentity, knownTogether } from '../identity/revocation-target.ts';
import type { ListedOperation } from '../openapi/listed-operation.ts';
import { type Configuration, findCosts } from './configuration.ts';
import { LimitEvents } from './log/limit-events.ts';
import { runFleet } from './run-fleet.ts';
import type { RunningIdentity } from './run-identity.ts';
import { runLiveLimits } from './run-live-limits.ts';

/** What the admin port reports on. */
type Reported = Pick<UsageSources, 'store' | 'buckets'> &
  Health & {
    readonly metrics: Metrics;
    readonly log: Logger;
    readonly tls: PortTls | undefined;
    readonly identity: Pick<RunningIdentity, 'directory' | 'revocations'>;
  };

export interface RunningAdmin {
  /** Opens the port, and returns its URL. */
  listen(address: { readonly host: string; readonly port: number }): Promise<string>;
  /** Receives what the gateway does, for metrics and usage. */
  readonly observer: GatewayObserver;
  /** Resolves once the live limits that were set before are in force, or after a second without Redis. */
  readonly ready: Promise<void>;
  replaceIdentities(identities: Identities): void;
  /** Of one of the `credentials`. */
  replaceCredential(index: number, identities: Identities): void;
  replaceOperations(operations: readonly ListedOperation[]): void;
  close(): Promise<void>;
}

/** The admin port of a configured gateway, ready to listen. */
export function runAdmin(
  { settings, files, ...configuration }: Configuration,
  { metrics, isReady, log, tls, identity, ...reported }: Reported,
): RunningAdmin {
  const batch = new UsageBatch();
  const activity = new Activity(batch);
  const talkers = new Talkers(batch);
  const refusals = new Refusals();
  const { store } = settings;
  const liveLimits = () => reported.buckets.live.inForce(Date.now()).length;
  const { fleet, ...running } = runFleet(store, talkers, { metrics, refusals, isReady, liveLimits });
  let { identities, operations } = configuration;
  const credentials = new Map(
    configuration.credentials.flatMap((one, index) => (one === undefined ? [] : [[index, one.identities]])),
  );
  metrics.showLiveLimits(liveLimits);
  const live = runLiveLimits(store, reported.buckets, log);
  const limits = new LiveLimitActions({
    buckets: reported.buckets,
    log,
    publisher: live.publisher,
    findCosts: (changed) => findCosts(operations, changed, settings),
  });
  const server = createAdminServer({
    settings: settings.admin,
    tls,
    metrics,
    health: { isReady },
    fleet,
    refusals,
    limits,
    revocations: new RevocationActions({
      log,
      identity: judgingIdentity(settings),
      shared: identity.revocations,
      identities: () => knownTogether([identities, ...credentials.values()]),
    }),
    usage: {
      ...reported,
      directory: identity.directory,
      activity,
      homeOf: (person) => identities.principals.get(person)?.account,
      writtenAt: (source, bucket, id) => files.limits.writtenAt(source, bucket, id),
    },
  });
  return {
    listen: async ({ host, port }) => servedUrl(await server.listen({ host, port }), tls),
    ready: live.ready,
    observer: observerOf(metrics, { batch, refusals, events: new LimitEvents(log) }),
    replaceIdentities(changed) {
      identities = changed;
    },
    replaceCredential: (index, changed) => credentials.set(index, changed),
    replaceOperations(changed) {
      operations = changed;
    },
    async close() {
      await server.close();
      await running.close();
      live.close();
    },
  };
}

interface Receivers {
  readonly batch: UsageBatch;
  readonly refusals: Refusals;
  readonly events: LimitEvents;
}

function observerOf(metrics: Metrics, { batch, refusals, events }: Receivers): GatewayObserver {
  return {
    unlistedOperation: (method) => metrics.unlistedOperation(method),
    requestFinished(context, status, totalMs) {
      metrics.requestFinished(context, status, totalMs);
      const nowMs = context.startedMs + totalMs;
      batch.requestFinished(context, nowMs);
      refusals.requestFinished(context, Date.now());
      events.requestFinished(context, nowMs);
    },
  };
}

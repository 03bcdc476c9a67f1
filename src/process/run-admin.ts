import type { Logger } from 'pino';
import { Refusals } from '../admin/fleet/refusals.ts';
import { LiveLimitActions } from '../admin/limits/live.ts';
import { RevocationActions } from '../admin/revocations/actions.ts';
import type { UsageSources } from '../admin/usage/usage.ts';
import { type Identities, ownersIn } from '../config/files/identities.ts';
import { judgingIdentity, knownTogether } from '../identity/revocation-target.ts';
import type { PortTls } from '../listener/tls.ts';
import type { GatewayObserver } from '../observe/gateway-observer.ts';
import { LimitEvents } from '../observe/log/limit-events.ts';
import type { Metrics } from '../observe/metrics/metrics.ts';
import { Talkers } from '../observe/top/talkers.ts';
import { Activity } from '../observe/usage/activity.ts';
import { UsageBatch } from '../observe/usage/batch.ts';
import type { ListedOperation } from '../openapi/listed-operation.ts';
import { createAdminServer, type Health } from '../ports/admin.ts';
import type { SharedClock } from '../shared/clock.ts';
import type { SharedStore } from '../store/shared-store.ts';
import { type Configuration, findCosts } from './configuration.ts';
import { runFleet } from './run-fleet.ts';
import type { RunningIdentity } from './run-identity.ts';
import { runLiveLimits } from './run-live-limits.ts';

/** What the admin port reports on. */
type Reported = Pick<UsageSources, 'store' | 'buckets'> &
  Health & {
    readonly metrics: Metrics;
    readonly log: Logger;
    readonly tls: PortTls | undefined;
    /** Undefined where no other replica shares the store. */
    readonly shared: SharedStore | undefined;
    /** The clock of Redis. */
    readonly clock: SharedClock;
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
  { metrics, isReady, log, tls, shared, clock, identity, ...reported }: Reported,
): RunningAdmin {
  const batch = new UsageBatch();
  const activity = new Activity(batch);
  const talkers = new Talkers(batch);
  const refusals = new Refusals();
  const liveLimits = () => reported.buckets.live.count(clock.nowMs());
  const sources = { metrics, refusals, isReady, liveLimits, clock, store: reported.store };
  const { fleet, ...running } = runFleet(shared, talkers, { ...sources, settings: settings.store }, log);
  let { identities, operations } = configuration;
  const credentials = credentialIdentities(configuration);
  metrics.showLiveLimits(liveLimits);
  const live = runLiveLimits(shared, reported.buckets, { clock, observer: metrics, log });
  const limits = new LiveLimitActions({
    buckets: reported.buckets,
    log,
    publisher: live.publisher,
    knownOwners: (section) =>
      areListed(files) ? ownersIn(section, [identities, ...credentials.values()]) : undefined,
    findCosts: (changed) => findCosts(operations, changed, settings),
  });
  const server = createAdminServer({
    settings,
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
    listen: server.listen,
    ready: live.ready,
    observer: observerOf(metrics, { batch, refusals, clock, events: new LimitEvents(log) }),
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

/** Whether files list every Account. */
function areListed({ identities, credentials }: Configuration['files']): boolean {
  return (
    identities !== undefined && credentials.every((one) => one === undefined || one.identities !== undefined)
  );
}

/** The identities of the credentials that have some of their own, by place. */
function credentialIdentities({ credentials }: Pick<Configuration, 'credentials'>): Map<number, Identities> {
  const all = credentials.flatMap((one, index) =>
    one === undefined ? [] : [[index, one.identities] as const],
  );
  return new Map(all);
}

interface Receivers {
  readonly batch: UsageBatch;
  readonly refusals: Refusals;
  readonly clock: SharedClock;
  readonly events: LimitEvents;
}

function observerOf(metrics: Metrics, { batch, refusals, clock, events }: Receivers): GatewayObserver {
  return {
    unlistedOperation: (method) => metrics.unlistedOperation(method),
    tunnelOpened: (traffic) => metrics.tunnelOpened(traffic),
    tunnelClosed: (traffic) => metrics.tunnelClosed(traffic),
    requestFinished(context, status, totalMs) {
      metrics.requestFinished(context, status, totalMs);
      const nowMs = context.startedMs + totalMs;
      batch.requestFinished(context, nowMs);
      refusals.requestFinished(context, clock.nowMs());
      events.requestFinished(context, nowMs);
    },
  };
}

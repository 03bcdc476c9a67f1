import type { Logger } from 'pino';
import type { Ages } from '../../admin/action.ts';
import { BlockActions } from '../../admin/blocks/actions.ts';
import type { OwnerReports } from '../../admin/fleet/owner-reports.ts';
import { Refusals } from '../../admin/fleet/refusals.ts';
import { LiveLimitActions } from '../../admin/limits/live.ts';
import { RevocationActions } from '../../admin/revocations/actions.ts';
import { RevocationTries } from '../../admin/revocations/tries.ts';
import type { UsageSources } from '../../admin/usage/usage.ts';
import type { Identities } from '../../config/files/identities.ts';
import type { Blocks } from '../../facts/blocks.ts';
import type { SharedClock } from '../../facts/clock.ts';
import { judgingIdentity } from '../../facts/revocation-target.ts';
import { createAdminServer, type Health } from '../../gateway/admin.ts';
import type { PortTls } from '../../http/server/tls.ts';
import type { GatewayObserver } from '../../observe/gateway-observer.ts';
import type { Changes } from '../../observe/log/changes.ts';
import { LimitEvents } from '../../observe/log/limit-events.ts';
import type { Metrics } from '../../observe/metrics/metrics.ts';
import { Activity } from '../../observe/usage/activity.ts';
import { UsageBatch } from '../../observe/usage/batch.ts';
import { Talkers } from '../../observe/usage/talkers.ts';
import type { ListedOperation } from '../../operations/listed-operation.ts';
import type { SharedStore } from '../../store/shared-store.ts';
import { type Configuration, findCosts } from '../configuration.ts';
import { KnownIdentities } from './known-identities.ts';
import { runBlocks } from './run-blocks.ts';
import type { RunningFacts } from './run-facts.ts';
import { runFleet } from './run-fleet.ts';
import type { RunningIdentity } from './run-identity.ts';
import { runLiveLimits } from './run-live-limits.ts';
import type { RunningShare } from './run-share.ts';

/** What the admin port reports on. */
type Reported = Pick<UsageSources, 'store' | 'buckets'> &
  Health & {
    readonly metrics: Metrics;
    readonly log: Logger;
    readonly changes: Changes;
    readonly tls: PortTls | undefined;
    /** Undefined where no other replica shares the store. */
    readonly shared: SharedStore | undefined;
    /** The clock of Redis. */
    readonly clock: SharedClock;
    readonly identity: Pick<RunningIdentity, 'directory' | 'revocations'>;
    readonly share: Pick<RunningShare, 'replicas'>;
  };

export interface RunningAdmin {
  /** Opens the port, and returns its URL. */
  listen(address: { readonly host: string; readonly port: number }): Promise<string>;
  /** Receives what the gateway does, for metrics and usage. */
  readonly observer: GatewayObserver;
  readonly blocks: Blocks;
  readonly reports: OwnerReports;
  /** Resolves once the live limits and blocks that were set before are in force, or after a second without Redis. */
  readonly ready: Promise<unknown>;
  replaceIdentities(identities: Identities): void;
  /** Of one of the `credentials`. */
  replaceCredential(index: number, identities: Identities): void;
  replaceOperations(operations: readonly ListedOperation[]): void;
  close(): Promise<void>;
}

/** The admin port of a configured gateway, ready to listen. */
export function runAdmin(configuration: Configuration, reported: Reported): RunningAdmin {
  const { settings } = configuration;
  const { metrics, isReady, log, changes, tls, shared, clock, identity, buckets } = reported;
  const batch = new UsageBatch();
  const [activity, talkers] = [new Activity(batch), new Talkers(batch)];
  const refusals = new Refusals(() => clock.nowMs());
  const tries = new RevocationTries(shared, () => clock.nowMs());
  const known = new KnownIdentities(configuration);
  let { operations } = configuration;
  const reporting = { observer: metrics, log, changes };
  const live = runLiveLimits(shared, buckets, { clock, ...reporting });
  const { blocks, ...blocking } = runBlocks(shared, reporting);
  const sources = { refusals, activity, blocks, settings: settings.store };
  const { fleet, reports, ...running } = runFleet(shared, talkers, { ...sources, ...shownOf(reported) }, log);
  const server = createAdminServer({
    ...{
      settings,
      tls,
      metrics,
      health: { isReady },
      fleet,
      reports,
      ages: agesOf(live, blocking, identity),
    },
    limits: new LiveLimitActions({
      ...{ buckets, log: changes, publisher: live.publisher },
      knownOwners: (section) => known.owners(section),
      operations: () => operations,
      findCosts: (changed) => findCosts(operations, changed, settings),
    }),
    blocks: new BlockActions({
      ...{ blocks, log: changes, publisher: blocking.publisher },
      known: (scope) => known.ids(scope),
    }),
    revocations: new RevocationActions({
      ...{ log, tries, identity: judgingIdentity(settings), shared: identity.revocations },
      identities: () => known.together(),
    }),
    usage: usageOf(configuration, { ...reported, blocks, activity, reports, known }),
  });
  return {
    listen: running.announced(server.listen),
    ...{ blocks, reports, ready: Promise.all([live.ready, blocking.ready]) },
    observer: observerOf(metrics, { batch, refusals, tries, events: new LimitEvents(log) }),
    replaceIdentities: (changed) => known.replace(changed),
    replaceCredential: (index, changed) => known.replaceCredential(index, changed),
    replaceOperations(changed) {
      operations = changed;
    },
    async close() {
      await server.close();
      tries.close();
      await running.close();
      live.close();
      blocking.close();
    },
  };
}

function usageOf(
  { files }: Configuration,
  {
    known,
    identity,
    ...sources
  }: Omit<UsageSources, 'directory' | 'homeOf' | 'writtenAt'> &
    Pick<Reported, 'identity'> & { readonly known: KnownIdentities },
): UsageSources {
  return {
    ...sources,
    directory: identity.directory,
    homeOf: (person) => known.homeOf(person),
    writtenAt: (bucket) => files.limits.writtenAt(bucket),
  };
}

type Aged = Pick<RunningFacts<never>, 'ageSeconds'>;

/** Without Redis, nobody else makes any. */
function agesOf(live: Aged, blocks: Aged, { revocations }: Reported['identity']): Ages {
  return {
    limits: live.ageSeconds,
    blocks: blocks.ageSeconds,
    revocations: () => revocations?.ageSeconds() ?? 0,
  };
}

interface Receivers {
  readonly batch: UsageBatch;
  readonly refusals: Refusals;
  readonly tries: RevocationTries;
  readonly events: LimitEvents;
}

/** What a replica publishes about itself, besides its requests. */
function shownOf(reported: Reported) {
  const { metrics, changes, isReady, clock, store, share } = reported;
  metrics.showInFlight(store.slots);
  const liveLimits = showLiveLimits(reported);
  return { metrics, changes, isReady, clock, store, share: share.replicas, liveLimits };
}

/** Returns how many live limits are in force. */
function showLiveLimits({ metrics, buckets, clock }: Reported): () => number {
  const count = () => buckets.live.count(clock.nowMs());
  metrics.showLiveLimits(count, () => buckets.live.inForce(clock.nowMs())[0]?.untilMs);
  return count;
}

function observerOf(metrics: Metrics, { batch, refusals, tries, events }: Receivers): GatewayObserver {
  return {
    unlistedOperation: (method) => metrics.unlistedOperation(method),
    tunnelOpened: (traffic) => metrics.tunnelOpened(traffic),
    tunnelClosed: (traffic) => metrics.tunnelClosed(traffic),
    requestFinished(context, status, totalMs) {
      metrics.requestFinished(context, status, totalMs);
      const nowMs = context.startedMs + totalMs;
      batch.requestFinished(context, nowMs);
      refusals.requestFinished(context);
      tries.requestFinished(context);
      events.requestFinished(context, nowMs);
    },
  };
}

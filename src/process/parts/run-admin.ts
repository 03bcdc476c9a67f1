import { BlockApi } from '../../admin/facts/block-api.ts';
import { blockEvents, liveLimitEvents } from '../../admin/facts/fact-events.ts';
import { LiveLimitApi } from '../../admin/facts/live-limit-api.ts';
import { RevocationApi } from '../../admin/facts/revocation-api.ts';
import { RevocationTries } from '../../admin/facts/tries.ts';
import { KnownOwners, type KnownSources } from '../../admin/find/known-owners.ts';
import { SeenPrincipals } from '../../admin/find/seen-principals.ts';
import type { OwnerReports } from '../../admin/fleet/owner-reports.ts';
import { Refusals } from '../../admin/fleet/refusals.ts';
import type { Why } from '../../admin/why/why.ts';
import type { Identities } from '../../config/files/identities/parse.ts';
import { Blocks } from '../../facts/blocks.ts';
import { FollowedFacts } from '../../facts/followed-facts.ts';
import { judgingIdentity } from '../../facts/revocation-target.ts';
import type { GatewayObserver } from '../../observe/gateway-observer.ts';
import { LimitEvents } from '../../observe/log/events.ts';
import type { Metrics } from '../../observe/metrics/metrics.ts';
import { Activity } from '../../observe/usage/activity.ts';
import { UsageBatch } from '../../observe/usage/batch.ts';
import { Talkers } from '../../observe/usage/talkers.ts';
import type { ListedOperation } from '../../operations/listed-operation.ts';
import { type Configuration, findCosts } from '../configuration.ts';
import { adminServerOf, type Reported } from './admin-server.ts';
import { KnownIdentities } from './known-identities.ts';
import { runFleet } from './run-fleet.ts';
import { runHistory } from './run-history.ts';
import { runWhy } from './run-why.ts';

export interface RunningAdmin {
  /** Opens the port, and returns its URL. */
  listen(address: { readonly host: string; readonly port: number }): Promise<string>;
  /** Receives what the gateway does, for metrics and usage. */
  readonly observer: GatewayObserver;
  readonly blocks: Blocks;
  readonly reports: OwnerReports;
  /** Resolves when earlier live limits, blocks and revocations are in force, or after one second if Redis does not answer. */
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
  const { metrics, log, sharing, clock } = reported;
  const batch = new UsageBatch();
  const [activity, talkers] = [new Activity(batch), new Talkers(batch)];
  const refusals = new Refusals(() => clock.nowMs());
  const why = runWhy(configuration.files.limits, reported, batch.charges);
  const tries = new RevocationTries(sharing.store, () => clock.nowMs());
  const known = new KnownIdentities(configuration);
  let { operations } = configuration;
  const blocks = new Blocks(clock);
  const history = runHistory({ ...reported, shared: sharing.store, certificateEnds: reported.tls.ends });
  const owners = knownOwners(reported, { batch, activity, blocks, known, reports: () => reports });
  const facts = runFacts(configuration, reported, {
    tries,
    known,
    blocks,
    owners,
    operations: () => operations,
  });
  const { storeMeasured } = history;
  const sources = { refusals, activity, blocks, storeMeasured, settings: settings.store };
  const { fleet, reports, ...running } = runFleet(
    sharing.store,
    talkers,
    { ...sources, ...shownOf(reported) },
    log,
  );
  const server = adminServerOf(configuration, reported, {
    ...{ fleet, reports, owners, refusals, blocks, activity, known, why },
    ...{ facts: facts.apis, history: history.history },
    operations: () => operations,
  });
  return {
    async listen(address) {
      const url = await running.announced(server.listen)(address);
      history.joined();
      return url;
    },
    blocks,
    reports,
    ready: facts.ready,
    observer: observerOf(metrics, { batch, refusals, why, tries, events: new LimitEvents(log) }),
    replaceIdentities: (changed) => known.replace(changed),
    replaceCredential: (index, changed) => known.replaceCredential(index, changed),
    replaceOperations(changed) {
      operations = changed;
    },
    async close() {
      await server.close();
      tries.close();
      await why.close();
      await history.close();
      await running.close();
      facts.close();
    },
  };
}

interface OwnerSources extends Pick<KnownSources, 'activity' | 'blocks' | 'reports'> {
  readonly batch: UsageBatch;
  readonly known: KnownIdentities;
}

function knownOwners(
  { buckets, identity, clock }: Reported,
  { batch, known, ...sources }: OwnerSources,
): KnownOwners {
  return new KnownOwners({
    ...sources,
    identities: known,
    seen: new SeenPrincipals(batch),
    live: buckets.live,
    directory: identity.directory,
    limits: () => buckets.limits,
    nowMs: () => clock.nowMs(),
  });
}

interface FactSources {
  readonly tries: RevocationTries;
  readonly known: KnownIdentities;
  readonly blocks: Blocks;
  readonly owners: KnownOwners;
  /** The operations in force. */
  operations(): readonly ListedOperation[];
}

/** Follows the live limits and the blocks of all replicas, and lets operators change them and the revocations. */
function runFacts(
  { settings }: Configuration,
  { sharing, buckets, changes, identity, metrics }: Reported,
  { tries, known, blocks, owners, operations }: FactSources,
) {
  const { clock } = sharing;
  if (sharing.store !== undefined) metrics.showClock(() => clock.offsetMs);
  const limits = new FollowedFacts(buckets.live, sharing, liveLimitEvents(buckets, changes));
  const blocking = new FollowedFacts(blocks, sharing, blockEvents(blocks, changes));
  const blockApi = new BlockApi({
    blocks,
    facts: blocking,
    log: changes,
    owners,
  });
  const limitApi = new LiveLimitApi({
    buckets,
    facts: limits,
    blocks: blockApi,
    log: changes,
    owners,
    findCosts: (changed) => findCosts(operations(), changed, settings),
  });
  const revocationApi = new RevocationApi({
    facts: identity.revocations,
    log: changes,
    identity: judgingIdentity(settings),
    tries,
    identities: () => known.all,
  });
  return {
    apis: [limitApi, blockApi, revocationApi],
    ready: Promise.all([limits.ready, blocking.ready, identity.revocations.ready]),
    close() {
      limits.close();
      blocking.close();
    },
  };
}

interface Receivers {
  readonly batch: UsageBatch;
  readonly refusals: Refusals;
  readonly why: Why;
  readonly tries: RevocationTries;
  readonly events: LimitEvents;
}

/** What a replica publishes about itself, besides its requests. */
function shownOf(reported: Reported) {
  const { metrics, changes, isReady, clock, store, share } = reported;
  metrics.showInFlight(store.slots);
  const liveLimits = showLiveLimits(reported);
  return {
    metrics,
    changes,
    isReady,
    clock,
    store,
    liveLimits,
    share: share.replicas,
    certificateEnds: reported.tls.ends,
  };
}

/** Returns how many live limits are in force. */
function showLiveLimits({ metrics, buckets, clock }: Reported): () => number {
  const count = () => buckets.live.count(clock.nowMs());
  metrics.showLiveLimits(count, () => buckets.live.inForce(clock.nowMs())[0]?.untilMs);
  return count;
}

function observerOf(metrics: Metrics, { batch, refusals, why, tries, events }: Receivers): GatewayObserver {
  return {
    receipt: (event) => metrics.receipt(event),
    heldEnded(payer, operation, points) {
      metrics.heldEnded(payer, operation, points);
      batch.pointsSpent(payer, operation, points, performance.now());
    },
    unlistedOperation: (method) => metrics.unlistedOperation(method),
    showUpstreams: (upstreams) => metrics.showUpstreams(upstreams),
    tunnelOpened: (traffic) => metrics.tunnelOpened(traffic),
    tunnelClosed: (traffic) => metrics.tunnelClosed(traffic),
    requestFinished(context, status, totalMs) {
      metrics.requestFinished(context, status, totalMs);
      const nowMs = context.startedMs + totalMs;
      batch.requestFinished(context, nowMs);
      if (context.refusal !== undefined) {
        refusals.requestFinished(context);
        why.requestFinished(context);
        tries.requestFinished(context);
      }
      events.requestFinished(context, nowMs);
    },
  };
}

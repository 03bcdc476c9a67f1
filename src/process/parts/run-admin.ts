import { BlockApi } from '../../admin/facts/block-api.ts';
import { blockEvents, liveLimitEvents } from '../../admin/facts/fact-events.ts';
import { LiveLimitApi } from '../../admin/facts/live-limit-api.ts';
import { RevocationApi } from '../../admin/facts/revocation-api.ts';
import { filedLimit } from '../../admin/usage/filed-limit.ts';
import type { Identities } from '../../config/files/identities/parse-identities.ts';
import { FollowedFacts } from '../../facts/followed-facts.ts';
import { judgingIdentity } from '../../facts/revocation-target.ts';
import type { Address } from '../../gateway/dependencies.ts';
import type { GatewayObserver } from '../../observe/gateway-observer.ts';
import { LimitEvents } from '../../observe/log/events.ts';
import { type Configuration, findCosts } from '../configuration.ts';
import { adminServerOf } from './admin-server.ts';
import { type Collected, collect } from './collect.ts';
import type { Reported } from './reported.ts';
import { runFleet } from './run-fleet.ts';

/** The admin port of a configured gateway, ready to listen. */
export function runAdmin(configuration: Configuration, reported: Reported) {
  let { operations } = configuration;
  const collected = collect(
    configuration,
    reported,
    () => operations,
    () => running.reports,
  );
  const { blocks, history, known, tries, why } = collected;
  const facts = runFacts(configuration, reported, collected);
  const running = runFleet(configuration.settings.store, reported, collected);
  const server = adminServerOf(configuration, reported, collected, running, facts.apis);
  return {
    /** Opens the port, and returns its URL. */
    async listen(address: Address) {
      const url = await server.listen(address);
      running.announce(url, address.host);
      history.joined();
      return url;
    },
    blocks,
    reports: running.reports,
    /** Resolves when earlier live limits, blocks and revocations are in force, or after one second if Redis does not answer. */
    ready: facts.ready,
    /** Receives what the gateway does, for metrics and usage. */
    observer: observerOf(reported, collected),
    replaceIdentities: (changed: Identities) => known.replace(changed),
    /** Of one of the `credentials`. */
    replaceCredential: (index: number, changed: Identities) => known.replaceCredential(index, changed),
    replaceOperations(changed: typeof operations) {
      operations = changed;
    },
    async close() {
      await server.close();
      await tries.close();
      await why.close();
      await history.close();
      await running.close();
      facts.close();
    },
  };
}

/** Follows the live limits and the blocks of all replicas, and lets operators change them and the revocations. */
function runFacts(
  { settings }: Configuration,
  { sharing, buckets, changes, identity, metrics }: Reported,
  { tries, known, blocks, owners, operations, activity }: Collected,
) {
  const { clock } = sharing;
  if (sharing.store !== undefined) metrics.showClock(() => clock.offsetMs);
  const limits = new FollowedFacts(buckets.live, sharing, liveLimitEvents(buckets, changes));
  const blocking = new FollowedFacts(blocks, sharing, blockEvents(blocks, changes));
  const blockApi = new BlockApi({ blocks, facts: blocking, log: changes, owners });
  const { directory } = identity;
  const ownerSources = { buckets, activity, directory, homeOf: (one: string) => known.principalOf(one) };
  const limitApi = new LiveLimitApi({
    buckets,
    facts: limits,
    blocks: blockApi,
    log: changes,
    owners,
    filedLimit: (bucket, id) => filedLimit(bucket, id, ownerSources),
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

function observerOf(
  { metrics, log }: Reported,
  { batch, requests, refusals, why, tries }: Collected,
): GatewayObserver {
  const events = new LimitEvents(log);
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
      requests.add(context, status, nowMs);
      if (context.refusal !== undefined) {
        refusals.requestFinished(context);
        why.requestFinished(context);
        tries.requestFinished(context);
      }
      events.requestFinished(context, nowMs);
    },
  };
}

import { RevocationTries } from '../../admin/facts/tries.ts';
import { KnownOwners } from '../../admin/find/known-owners.ts';
import { SeenPrincipals } from '../../admin/find/seen-principals.ts';
import type { OwnerReports } from '../../admin/fleet/owner-reports.ts';
import { Refusals } from '../../admin/fleet/refusals.ts';
import { openMemoryArchive } from '../../admin/why/memory-archive.ts';
import { Why, type WhySources } from '../../admin/why/why-refused.ts';
import { Blocks } from '../../facts/blocks.ts';
import { Ignored } from '../../facts/ignored.ts';
import { Activity } from '../../observe/usage/activity.ts';
import { LastRequests, UsageBatch } from '../../observe/usage/batch.ts';
import { Talkers } from '../../observe/usage/talkers.ts';
import type { ListedOperation } from '../../operations/listed-operation.ts';
import type { Configuration } from '../configuration.ts';
import { KnownIdentities } from './known-identities.ts';
import type { Reported } from './reported.ts';
import { runHistory } from './run-history.ts';

/** What a replica collects for the admin port. */
export type Collected = ReturnType<typeof collect>;

/**
 * @param operations those in force
 * @param reports of the fleet, which is asked only once it runs
 */
export function collect(
  configuration: Configuration,
  reported: Reported,
  operations: () => readonly ListedOperation[],
  reports: () => OwnerReports,
) {
  const { buckets, clock, identity, sharing } = reported;
  const nowMs = () => clock.nowMs();
  const batch = new UsageBatch();
  const activity = new Activity(batch);
  const blocks = new Blocks(clock);
  const known = new KnownIdentities(configuration);
  return {
    batch,
    requests: new LastRequests(),
    activity,
    talkers: new Talkers(batch),
    refusals: new Refusals(nowMs),
    why: runWhy(configuration, reported, batch.charges),
    tries: new RevocationTries(sharing.store, nowMs),
    history: runHistory(reported),
    known,
    blocks,
    owners: new KnownOwners({
      identities: known,
      activity,
      seen: known.areListed ? undefined : new SeenPrincipals(batch),
      blocks,
      live: buckets.live,
      directory: identity.directory,
      limits: () => buckets.limits,
      nowMs,
      reports,
    }),
    operations,
  };
}

/** Keeps why requests were refused, in the store that replicas share, or in memory. */
function runWhy(
  { files }: Configuration,
  { sharing, buckets, clock, metrics, log, store }: Reported,
  charges: WhySources['charges'],
): Why {
  const shared = sharing.store;
  const nowMs = () => clock.nowMs();
  const { replica } = store.slots;
  let isLogged = false;
  const sources: WhySources = {
    charges,
    nowMs,
    rows: () => buckets.limits.rows,
    limits: () => buckets.limits,
    writtenAt: (bucket) => files.limits.writtenAt(bucket),
    ignored: new Ignored('summary', metrics, log),
    unfindable(count) {
      metrics.refusalsUnfindable(count);
      if (isLogged) return;
      isLogged = true;
      log.warn({ count }, 'weir why does not find all refused requests: a flood had more than is kept');
    },
  };
  const archive = shared?.openArchive('refusals') ?? openMemoryArchive(nowMs);
  return new Why(replica, sources, archive, shared?.openBoard('refused', replica));
}

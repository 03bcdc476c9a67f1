import { RevocationTries } from '../../admin/facts/tries.ts';
import { KnownOwners } from '../../admin/find/known-owners.ts';
import { SeenPrincipals } from '../../admin/find/seen-principals.ts';
import type { OwnerReports } from '../../admin/fleet/owner-reports.ts';
import { Refusals } from '../../admin/fleet/refusals.ts';
import type { Why } from '../../admin/why/why.ts';
import { Blocks } from '../../facts/blocks.ts';
import { Activity } from '../../observe/usage/activity.ts';
import { LastRequests, UsageBatch } from '../../observe/usage/batch.ts';
import { Talkers } from '../../observe/usage/talkers.ts';
import type { ListedOperation } from '../../operations/listed-operation.ts';
import type { Configuration } from '../configuration.ts';
import { KnownIdentities } from './known-identities.ts';
import type { Reported } from './reported.ts';
import { type RunningHistory, runHistory } from './run-history.ts';
import { runWhy } from './run-why.ts';

/** What a replica collects for the admin port. */
export interface Collected {
  readonly batch: UsageBatch;
  readonly requests: LastRequests;
  readonly activity: Activity;
  readonly talkers: Talkers;
  readonly refusals: Refusals;
  readonly why: Why;
  readonly tries: RevocationTries;
  readonly history: RunningHistory;
  readonly known: KnownIdentities;
  readonly blocks: Blocks;
  readonly owners: KnownOwners;
  /** The operations in force. */
  operations(): readonly ListedOperation[];
}

/** @param reports of the fleet, which is asked only once it runs */
export function collect(
  configuration: Configuration,
  reported: Reported,
  operations: () => readonly ListedOperation[],
  reports: () => OwnerReports,
): Collected {
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
      seen: new SeenPrincipals(batch),
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

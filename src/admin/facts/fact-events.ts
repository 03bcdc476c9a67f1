/**
 * What a replica does with facts that are made, removed or have ended: it puts them in force and logs them. It does nothing with those
 * that are known already, so each replica logs each change once, and so does the one that made it.
 */
import { rowNamed } from '../../domain/limits/limits.ts';
import type { Block, Blocks } from '../../facts/blocks.ts';
import type { FactEvents } from '../../facts/fact-listener.ts';
import type { LiveLimit } from '../../facts/live-limits.ts';
import { shownTarget } from '../../facts/revocation-message.ts';
import type { Revocation, Revocations } from '../../facts/revocations.ts';
import type { IdentityObserver } from '../../identity/identity-observer.ts';
import type { Changes } from '../../observe/log/noticed-changes.ts';
import type { Buckets } from '../../stages/buckets/buckets.ts';
import { filedLimitOf } from '../../stages/buckets/plans.ts';
import { raisedLimit } from './raised-limits.ts';

export function blockEvents(blocks: Blocks, changes: Changes): FactEvents<Block> {
  return {
    apply(block) {
      const { scope, id, untilMs, why, by, isRemoved, replica } = block;
      if (!blocks.add(block, blocks.clock.nowMs())) return;
      const until = isRemoved ? undefined : isoOf(untilMs);
      const members = { about: `${scope} ${id}`, scope, id, until, why, by, replica };
      changes.info(members, isRemoved ? 'block.undone' : 'block.made', block.atMs);
    },
    ended({ scope, id, untilMs, why, by }) {
      changes.info({ about: `${scope} ${id}`, scope, id, why, by }, 'block.ended', untilMs);
    },
  };
}

export function revocationEvents(
  revocations: Revocations,
  changes: Changes,
  observer: IdentityObserver,
): FactEvents<Revocation> {
  return {
    apply(revocation) {
      if (!revocations.add(revocation)) return;
      observer.revoked();
      const name = revocation.isRemoved ? 'revocation.undone' : 'revocation.made';
      changes.info({ ...membersOf(revocation), replica: revocation.replica }, name, revocation.atMs);
    },
    ended: (revocation) => changes.info(membersOf(revocation), 'revocation.ended', revocation.untilMs),
    connected: (isConnected) => observer.revocationsSubscribed(isConnected),
  };
}

function membersOf({ revoked, reason }: Revocation) {
  const { kind, target } = shownTarget(revoked);
  return { about: `${kind} ${target}`, kind, target, ...reason };
}

export function liveLimitEvents(buckets: Buckets, changes: Changes): FactEvents<LiveLimit> {
  return {
    apply: (limit) => applyLive(buckets, limit, changes),
    ended({ bucket, id, limit, untilMs, why, by }) {
      const about = `the live limit ${limit} for ${bucket} of ${id}`;
      changes.info({ about, id, bucket, from: { limit }, why, by }, 'live-limit.ended', untilMs);
    },
  };
}

function applyLive(buckets: Buckets, live: LiveLimit, changes: Changes): void {
  const { bucket, id, limit, untilMs, isRemoved, why, by, replica } = live;
  const { nowMs } = buckets;
  const before = buckets.live.of(bucket, id, nowMs);
  const isChanged = buckets.applyLive(live);
  if (!isChanged || (isRemoved && before === undefined)) return;
  const row = rowNamed(buckets.limits, bucket);
  const filed = filedValue(live, buckets);
  const from = before === undefined ? filed : ofLive(before.limit, before.untilMs);
  const to = isRemoved ? filed : ofLive(limit, untilMs);
  const change = isRemoved ? 'removed' : before === undefined ? 'added' : 'changed';
  const counts = { added: 0, removed: 0, changed: 0, [change]: 1 };
  const difference = [{ change, scope: row?.scope ?? null, id, bucket, from, to }];
  changes.info({ source: 'live', why, by, replica, ...counts, difference }, 'limits.changed', live.atMs);
  const raised = isRemoved ? undefined : raisedLimit(live, buckets);
  if (raised !== undefined) changes.error(raised, 'live-limit.raised', live.atMs);
}

function ofLive(limit: number, untilMs: number): object {
  return { limit, until: isoOf(untilMs) };
}

/** Undefined if the limits have no such row. */
function filedValue({ filed, bucket, id }: LiveLimit, { limits, nowMs }: Buckets): object | undefined {
  const limit = filed ?? filedLimitOf(limits, bucket, id, {}, nowMs);
  return limit === undefined ? undefined : { limit };
}

function isoOf(atMs: number): string {
  return new Date(atMs).toISOString();
}

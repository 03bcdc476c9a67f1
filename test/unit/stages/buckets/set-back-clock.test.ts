import { setTimeout } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { parseLimits } from '../../../../src/config/files/limits/parse-limits.ts';
import type { Caller } from '../../../../src/domain/caller.ts';
import { pace } from '../../../../src/domain/pace.ts';
import type { FactSharing } from '../../../../src/facts/fact-listener.ts';
import { FollowedFacts } from '../../../../src/facts/followed-facts.ts';
import { SharedClock } from '../../../../src/facts/shared-clock.ts';
import { Buckets } from '../../../../src/stages/buckets/buckets.ts';
import type { Operation } from '../../../../src/stages/request-context.ts';

const NOW_MS = Date.UTC(2026, 10, 25, 12);
const HOUR_MS = 3_600_000;

const LIMITS = `windowSeconds: 1
limits:
  month: { per: account, points: 900, period: month }
accounts:
  acct_1: { account-read: 90, until: "2026-11-25T14:00:00Z" }
`;

const READ: Operation = { id: 'read', kind: 'read', access: 'caller', cost: 1, listed: true };

const CALLER: Caller = {
  principal: { id: 'svc_1', type: 'ServiceAccount', account: 'acct_1', actsFor: new Set() },
  account: 'acct_1',
  organization: undefined,
  hasOrganizationLimit: false,
  hashTag: 'acct_1',
};

it('limits that had ended by a clock that was ahead are in force when it is set back', () => {
  const clock = new SharedClock(
    () => NOW_MS + 3 * HOUR_MS,
    () => 0,
  );
  const buckets = new Buckets('weir', parseLimits(LIMITS, 'limits.yaml'), () => clock.nowMs());
  clock.onSetBack = () => buckets.forget();
  const live = { bucket: 'month', id: 'acct_1', limit: 70, untilMs: NOW_MS + 2 * HOUR_MS, atMs: NOW_MS };
  const kept = { ...live, why: 'launch', by: 'alice', keptUntilMs: NOW_MS + 9 * HOUR_MS };
  buckets.applyLive(kept);
  const limitsNow = () => buckets.bucketsFor(CALLER, READ).buckets.map(({ name, limit }) => [name, limit]);
  expect(limitsNow()).toEqual([
    ['account-read', 500],
    ['month', 900],
  ]);
  clock.read({ nowMs: NOW_MS, sentMs: 0, answeredMs: 0 });
  expect(limitsNow()).toEqual([
    ['account-read', 90],
    ['month', 70],
  ]);
});

it('so are they without Redis, when the own clock of the process is set back', async () => {
  let ownMs = NOW_MS + 3 * HOUR_MS;
  const clock = new SharedClock(() => ownMs);
  const buckets = new Buckets('weir', parseLimits(LIMITS, 'limits.yaml'), () => clock.nowMs());
  clock.onSetBack = () => buckets.forget();
  const sharing = { store: undefined, clock } as FactSharing;
  const followed = new FollowedFacts(buckets.live, sharing, { apply() {}, ended() {} });
  const limitNow = () => buckets.bucketsFor(CALLER, READ).buckets[0]?.limit;
  expect(limitNow()).toBe(500);
  await setTimeout(2 * pace.endsMs);
  ownMs = NOW_MS;
  await setTimeout(2 * pace.endsMs);
  expect(limitNow()).toBe(90);
  followed.close();
});

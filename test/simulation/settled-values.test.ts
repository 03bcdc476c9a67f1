/** After each settlement, Redis has to have what a model says, to the last byte: whatever was there, or was lost. */
import fc from 'fast-check';
import { Redis } from 'ioredis';
import { afterAll, expect, test } from 'vitest';
import { settledKey } from '../../src/store/keys.ts';
import { withScripts } from '../../src/store/redis/scripts.ts';
import { sendSettlements } from '../../src/store/redis/send-settlements.ts';
import type { Settlement } from '../../src/store/store.ts';
import { generatedCases } from '../fixtures/generated-cases.ts';
import { sharedRedisUrl, uniquePrefix } from '../fixtures/redis-url.ts';
import { BOUNDS, type Given, scenario, WITHOUT_END } from './settled-cases.ts';
import { bytesInOrder, type Left, settledEntries } from './settled-values.ts';

const client = withScripts(new Redis(sharedRedisUrl()));
afterAll(() => client.disconnect());

const MARKED_MS = 20_000;
/** A busy machine may let so much time pass between a write and a look. */
const LATE_MS = 4_000;

test('Redis keeps the entries and the lives that a model says, after each settlement of whatever it has', {
  timeout: 240_000,
}, async () => {
  const prefix = uniquePrefix();
  let run = 0;
  await fc.assert(
    fc.asyncProperty(scenario, (given) => settleOnce(given, `${prefix}${run++}`)),
    { numRuns: generatedCases(2_000), endOnFailure: true, examples: BOUNDS.map((given) => [given]) },
  );
});

async function settleOnce(given: Given, prefix: string): Promise<void> {
  const { nowUs, buckets, isMarked } = given;
  const keys = buckets.map((_, index) => `${prefix}:1:{o}:row${index}:o`);
  const markKey = settledKey(`${prefix}:1:{o}:`, ID);
  for (const [index, { entries, keptMs }] of buckets.entries())
    if (entries.length > 0) await put(keys[index] as string, bytesInOrder(entries), keptMs);
  if (isMarked) await client.set(markKey, '1', 'PX', 90_000);
  const settlement = settlementOf(given, keys);
  const sent = given.isSentTwice ? [settlement, settlement] : [settlement];
  const replies = await sendSettlements(client, sent, { markedMs: MARKED_MS, nowUs });
  const { unapplied, markMs } = outcomeOf(given);
  const expected = buckets.map((bucket) => leftOf(bucket, settlement, unapplied === undefined, nowUs));
  const states = expected.map(({ state }) => state);
  // Without its newest entry, which may be of a clock that was ahead, a bucket counts older ones again.
  const again = buckets.map((bucket, index) => {
    const entries = [...(expected[index]?.entries ?? [])];
    return { ...leftOf({ ...bucket, entries }, settlement, false, nowUs).state, overPoints: 0 };
  });
  const answers = [
    { outcome: unapplied ?? 'settled', buckets: states },
    { outcome: unapplied ?? 'already', buckets: again },
  ];
  expect(replies).toEqual(answers.slice(0, sent.length));
  for (const [index, { keptMs }] of buckets.entries())
    await expectBucket(keys[index] as string, expected[index], keptMs);
  await expectMark(markKey, markMs);
}

async function put(key: string, bytes: Buffer, keptMs: number): Promise<void> {
  await client.set(key, bytes);
  if (keptMs !== WITHOUT_END) await client.pexpire(key, keptMs);
}

/** Why the settlement changes nothing, and the life of its mark; undefined without one. */
function outcomeOf({ isMarked, endsAfterUs = 0 }: Given): {
  unapplied?: 'already' | 'ended';
  markMs?: number;
} {
  if (isMarked) return { unapplied: 'already', markMs: 90_000 };
  if (endsAfterUs < 0) return { unapplied: 'ended' };
  return { markMs: MARKED_MS + Math.ceil(endsAfterUs / 1_000) };
}

const ID = 's-1';

function settlementOf({ nowUs, buckets, ...given }: Given, keys: readonly string[]): Settlement {
  const named = buckets[0]?.entries[given.named] ?? { atUs: nowUs - 5, points: 3 };
  const cost = Math.max(1, Math.min(2_000_000, named.points + given.costs));
  return {
    charge: { buckets: buckets.map((bucket, index) => ({ ...bucket, key: keys[index] ?? '' })), cost },
    chargedAtUs: given.isUnknown ? undefined : named.atUs + given.beside,
    cost: Math.min(2_000_000_000, Math.round(cost * given.share)),
    refundsRequests: false,
    id: ID,
    ...(given.endsAfterUs !== undefined && { endsAtUs: nowUs + given.endsAfterUs }),
  };
}

function leftOf(
  { entries, limit, windowSeconds, keptMs }: Given['buckets'][number],
  { charge: { cost }, chargedAtUs: chargedUs = 0, cost: final }: Settlement,
  isApplied: boolean,
  nowUs: number,
): Left {
  const seen = { nowUs, chargedUs, cost, final: isApplied ? final : cost, limit };
  return settledEntries(entries, windowSeconds * 1_000_000, entries.length > 0 ? keptMs : 0, seen);
}

async function expectBucket(key: string, left: Left | undefined, keptMs: number): Promise<void> {
  if (left === undefined) throw new Error('no such bucket');
  const value = await client.getBuffer(key);
  const leftMs = await client.pttl(key);
  const lifeMs = left.lifeMs ?? keptMs;
  const isGone = value === null && left.lifeMs !== undefined && lifeMs < LATE_MS;
  if (!isGone)
    expect(value?.toString('hex') ?? '', 'entries').toBe(bytesInOrder(left.entries).toString('hex'));
  if (left.entries.length > 0 && lifeMs === WITHOUT_END) expect(leftMs).toBe(-1);
  else if (left.entries.length > 0) expectLife(leftMs, lifeMs);
  else expect([-2, 0, 1]).toContain(leftMs);
}

async function expectMark(key: string, lifeMs: number | undefined): Promise<void> {
  expect(await client.exists(key)).toBe(lifeMs === undefined ? 0 : 1);
  if (lifeMs !== undefined) expectLife(await client.pttl(key), lifeMs);
}

function expectLife(leftMs: number, expectedMs: number): void {
  expect(leftMs, 'life').toBeLessThanOrEqual(expectedMs + 2);
  expect(leftMs, 'life').toBeGreaterThan(expectedMs - LATE_MS);
}

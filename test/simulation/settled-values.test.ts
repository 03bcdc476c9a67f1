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
import { type Entry, type Left, settledEntries } from './settled-values.ts';

const client = withScripts(new Redis(sharedRedisUrl()));
afterAll(() => client.disconnect());

const NOW_US = 1_790_000_000_000_000;
const MARKED_MS = 20_000;
/** A busy machine may let so much time pass between a write and a look. */
const LATE_MS = 4_000;

/** Times around the ends of the slots of a window, of the window, and of the present. */
function entriesOf(windowUs: number, nowUs: number) {
  const slotUs = windowUs / 100;
  const slot = fc.constantFrom(-1, 0, 0, 1, 2, 3, 50, 98, 99, 100, 101, 160);
  const within = fc.constantFrom(-1, 0, 1, slotUs / 2, slotUs / 2 + 1);
  const points = fc.oneof(fc.integer({ min: 1, max: 12 }), fc.constantFrom(40, 41, 1_999_999_999));
  const entry = fc
    .tuple(slot, within, points)
    .map(([slots, after, some]) => ({ atUs: nowUs - slots * slotUs + after, points: some }));
  return fc
    .uniqueArray(entry, { maxLength: 6, selector: ({ atUs }) => atUs })
    .map((all) => all.toSorted((one, other) => one.atUs - other.atUs))
    .filter((all) => all.filter(({ points: some }) => some > 50).length < 3);
}

const scenario = fc.constantFrom(0, 1, 49_999, 50_000).chain((afterUs) => {
  const nowUs = NOW_US + afterUs;
  const bucket = fc
    .record({ windowSeconds: fc.constantFrom(10, 20), keptMs: fc.constantFrom(9_000, 45_000) })
    .chain((one) => {
      const entries = fc.oneof(
        { weight: 6, arbitrary: entriesOf(one.windowSeconds * 1_000_000, nowUs) },
        fc.constant([]),
      );
      const limit = fc.oneof(fc.integer({ min: 1, max: 60 }), fc.constantFrom(249, 250, 251, 2_500, 10_000));
      return fc.record({
        windowSeconds: fc.constant(one.windowSeconds),
        keptMs: fc.constant(one.keptMs),
        entries,
        limit,
      });
    });
  return fc.record({
    nowUs: fc.constant(nowUs),
    buckets: fc.array(bucket, { minLength: 1, maxLength: 3 }),
    /** Which entry of the first bucket is named, and how far beside it; none if it has fewer. */
    named: fc.nat({ max: 5 }),
    beside: fc.constantFrom(0, 0, 0, -1, 1, -40_000, -100_000),
    isUnknown: fc.constantFrom(false, false, true),
    costs: fc.constantFrom(-1, 0, 0, 1, -5),
    share: fc.constantFrom(0, 0, 0.5, 1, 1.5, 3, 400_000_000),
    isSentTwice: fc.boolean(),
    isMarked: fc.constantFrom(false, false, false, true),
    endsAfterUs: fc.constantFrom(undefined, undefined, -1, 0, 1, 30_000_000),
  });
});

type Given = typeof scenario extends fc.Arbitrary<infer T> ? T : never;

test('Redis keeps the entries and the lives that a model says, after each settlement of whatever it has', {
  timeout: 240_000,
}, async () => {
  const prefix = uniquePrefix();
  let run = 0;
  await fc.assert(
    fc.asyncProperty(scenario, (given) => settleOnce(given, `${prefix}${run++}`)),
    { numRuns: generatedCases(2_000), endOnFailure: true },
  );
});

async function settleOnce(given: Given, prefix: string): Promise<void> {
  const { nowUs, buckets, isMarked } = given;
  const keys = buckets.map((_, index) => `${prefix}:1:{o}:row${index}:o`);
  const markKey = settledKey(`${prefix}:1:{o}:`, ID);
  for (const [index, { entries, keptMs }] of buckets.entries())
    if (entries.length > 0) await client.set(keys[index] as string, bytesOf(entries), 'PX', keptMs);
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
  expect(value?.toString('hex') ?? '', 'entries').toBe(bytesOf(left.entries).toString('hex'));
  const leftMs = await client.pttl(key);
  if (left.entries.length > 0) expectLife(leftMs, left.lifeMs ?? keptMs);
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

/** A bucket as lua/README.md describes it; empty without entries. */
function bytesOf(entries: readonly Entry[]): Buffer {
  const newest = entries.at(-1);
  if (newest === undefined) return Buffer.alloc(0);
  const bytes = Buffer.alloc(4 + 11 * entries.length);
  bytes.writeUInt32BE(entries.reduce((sum, { points }) => sum + points, 0));
  for (const [index, { atUs, points }] of [newest, ...entries.slice(0, -1)].entries()) {
    bytes.writeBigUInt64BE(BigInt(atUs) << 8n, 4 + 11 * index);
    bytes.writeUInt32BE(points, 11 + 11 * index);
  }
  return bytes;
}

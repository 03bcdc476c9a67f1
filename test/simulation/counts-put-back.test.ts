/** What lua/put-back.lua leaves in Redis, to the last byte, as a model says: whatever Redis had, and whatever the journal has. */
import fc from 'fast-check';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { withScripts } from '../../src/store/redis/scripts.ts';
import { generatedCases } from '../fixtures/generated-cases.ts';
import { sharedRedisUrl, uniquePrefix } from '../fixtures/redis-url.ts';
import { bytesInOrder, type Entry } from './settled-values.ts';

// As texts, because the client rounds numbers close to the highest count.
const client = withScripts(new Redis(sharedRedisUrl(), { stringNumbers: true }));
const MARK = `${uniquePrefix()}:mark`;
beforeAll(() => client.set(MARK, '* this-recovery 0123abc'));
afterAll(() => client.disconnect());

const US_PER_SECOND = 1_000_000;
const START_S = 1_790_000_000;
const MOST_POINTS = 4_000_000_000;
const LARGEST_COUNT = 2 ** 53;
const KEPT_MS = 900_000;
/** A busy machine may let so much time pass between a write and a look. */
const LATE_MS = 4_000;

interface Left {
  /** Undefined if the script leaves the key as it was. */
  readonly value: Buffer | undefined;
  readonly lifeMs: number;
  readonly added: number;
}

const UNCHANGED: Left = { value: undefined, lifeMs: 0, added: 0 };

/** Puts a text back where Redis has a value that lives for so long yet, and expects what is left. */
async function expectLeft(before: Buffer, keptMs: number, nowUs: number, text: string, left: Left) {
  const key = `${uniquePrefix()}:bucket`;
  if (before.length > 0) await client.set(key, before, 'PX', keptMs);
  const call = [2, MARK, key, 'this-recovery', `${nowUs} 0`, text];
  const isChanged = left.value !== undefined;
  expect(await client.putBack(call)).toEqual([isChanged ? '1' : '0', `${left.added}`]);
  const value = await client.getBuffer(key);
  expect(value?.toString('hex') ?? '').toBe((left.value ?? before).toString('hex'));
  const expectedMs = Math.max(before.length > 0 ? keptMs : 0, left.lifeMs);
  const leftMs = Number(await client.pttl(key));
  if (expectedMs > 0) expect(leftMs).toBeLessThanOrEqual(expectedMs + 1);
  expect(leftMs).toBeGreaterThan(expectedMs === 0 ? -3 : expectedMs - LATE_MS);
  expect(await client.putBack(call), 'once more').toEqual(['0', '0']);
}

/** Entries, oldest first, with as many points later than any time as the one or the other has. */
function merged(stored: readonly Entry[], recorded: readonly Entry[]): readonly Entry[] {
  const from = (entries: readonly Entry[], atUs: number) =>
    entries.reduce((sum, entry) => (entry.atUs >= atUs ? sum + entry.points : sum), 0);
  const times = [...new Set([...stored, ...recorded].map(({ atUs }) => atUs))].sort((a, b) => b - a);
  const entries: Entry[] = [];
  let sum = 0;
  for (const atUs of times) {
    const wanted = Math.min(MOST_POINTS, Math.max(from(stored, atUs), from(recorded, atUs)));
    if (wanted > sum) entries.unshift({ atUs, points: wanted - sum });
    sum = Math.max(sum, wanted);
  }
  return entries;
}

/** Joins entries of the same 1/100 of the window at the newest of them. */
function joined(entries: readonly Entry[], windowUs: number): readonly Entry[] {
  const bySlot = new Map<number, Entry>();
  for (const { atUs, points } of entries) {
    const slot = Math.floor(atUs / (windowUs / 100));
    bySlot.set(slot, { atUs, points: points + (bySlot.get(slot)?.points ?? 0) });
  }
  return [...bySlot.values()];
}

const sumOf = (entries: readonly Entry[]) => entries.reduce((sum, { points }) => sum + points, 0);

function windowLeft(
  stored: readonly Entry[],
  recorded: readonly Entry[],
  windowUs: number,
  nowUs: number,
): Left {
  const isCounting = ({ atUs }: Entry) => atUs > nowUs - windowUs;
  const counted = stored.slice(stored.findLastIndex((entry) => !isCounting(entry)) + 1);
  const isReadable = counted.every(({ atUs }, index) => atUs >= (counted[index - 1]?.atUs ?? 0));
  const known = isReadable ? counted : [];
  const present = recorded.map(({ atUs, points }) => ({ atUs: Math.min(atUs, nowUs), points }));
  const all = merged(known, present.filter(isCounting));
  if (bytesInOrder(all).equals(bytesInOrder(known))) return UNCHANGED;
  const entries = all.length > 601 ? joined(all, windowUs) : all;
  const lifeMs = Math.ceil((1.5 * windowUs + (entries.at(-1)?.atUs ?? 0) - nowUs) / 1_000);
  return { value: bytesInOrder(entries), lifeMs, added: sumOf(all) - sumOf(known) };
}

/** In thousandths of a window before now, and µs beside that. */
const ago = fc.record({
  share: fc.oneof(fc.integer({ min: -20, max: 1_100 }), fc.constantFrom(0, 1_000)),
  beside: fc.constantFrom(-1, 0, 0, 1),
});
const points = fc.oneof(
  { weight: 9, arbitrary: fc.integer({ min: 1, max: 9 }) },
  { weight: 1, arbitrary: fc.integer({ min: 1, max: MOST_POINTS }) },
);

const windowCase = fc.record({
  windowSeconds: fc.constantFrom(60, 3_600, 86_400),
  keptMs: fc.constantFrom(20_000, 10_000_000_000),
  stored: fc.array(fc.record({ ago, points }), { maxLength: 6 }),
  /** Further entries, so that there are more than are kept apart. */
  more: fc.oneof(
    { weight: 20, arbitrary: fc.constant(0) },
    { weight: 1, arbitrary: fc.integer({ min: 590, max: 610 }) },
  ),
  isUnordered: fc.oneof({ weight: 9, arbitrary: fc.constant(false) }, { weight: 1, arbitrary: fc.boolean() }),
  /** Of some, more was given back than charged. */
  recorded: fc.array(fc.record({ ago, points: fc.oneof(points, fc.integer({ min: -3, max: 3 })) }), {
    minLength: 1,
    maxLength: 6,
  }),
});

test('Redis has the entries and the life that a model says, after a window was put back', {
  timeout: 240_000,
}, async () => {
  const nowUs = START_S * US_PER_SECOND;
  await fc.assert(
    fc.asyncProperty(windowCase, async ({ windowSeconds, keptMs, stored, more, isUnordered, recorded }) => {
      const windowUs = windowSeconds * US_PER_SECOND;
      const timeOf = ({ share, beside }: (typeof stored)[number]['ago']) =>
        nowUs - (share * windowUs) / 1_000 + beside;
      const entries = stored.map((one) => ({
        atUs: timeOf(one.ago),
        points: Math.max(1, one.points % (MOST_POINTS / 8)),
      }));
      for (let index = 0; index < more; index++)
        entries.push({ atUs: nowUs - Math.floor((index * windowUs) / 700), points: 1 });
      if (!isUnordered) entries.sort((a, b) => a.atUs - b.atUs);
      const bySecond = new Map(
        recorded.map((one) => [Math.ceil(timeOf(one.ago) / US_PER_SECOND), one.points]),
      );
      const times = [...bySecond].sort(([a], [b]) => a - b);
      const text = `${windowSeconds} ${times.map((pair) => pair.join(' ')).join(' ')}`;
      const journal = times.map(([atS, of]) => ({ atUs: atS * US_PER_SECOND, points: of }));
      await expectLeft(
        bytesInOrder(entries),
        keptMs,
        nowUs,
        text,
        windowLeft(entries, journal, windowUs, nowUs),
      );
    }),
    { numRuns: generatedCases(2_000), endOnFailure: true },
  );
});

interface Count {
  readonly points: number;
  readonly atS: number;
}

const countBytes = ({ points, atS }: Count): Buffer => {
  const bytes = Buffer.alloc(12);
  for (let index = 0, rest = BigInt(points); index < 7; index++, rest >>= 8n)
    bytes[6 - index] = Number(rest & 255n);
  bytes.writeUIntBE(atS, 8, 4);
  return bytes;
};

function periodLeft(
  stored: Count | undefined,
  recorded: Count,
  [startS, endS]: readonly [number, number],
  nowUs: number,
): Left {
  const isOfPeriod = stored !== undefined && stored.atS >= startS && stored.points <= LARGEST_COUNT;
  const had = isOfPeriod ? stored : { points: 0, atS: 0 };
  const points = Math.min(recorded.points, LARGEST_COUNT);
  const isLater = stored !== undefined && stored.atS >= endS;
  if (nowUs >= endS * US_PER_SECOND || isLater || points <= had.points) return UNCHANGED;
  const nowS = Math.floor(nowUs / US_PER_SECOND);
  const atS = Math.max(startS, had.atS, Math.min(recorded.atS, nowS, endS - 1));
  const lifeMs = Math.ceil((endS * US_PER_SECOND - nowUs) / 1_000) + KEPT_MS;
  return { value: countBytes({ points, atS }), lifeMs, added: points - had.points };
}

const second = fc.oneof(fc.integer({ min: -120, max: 120 }), fc.constantFrom(-60, -1, 0, 1, 59, 60));
const count = fc.oneof(fc.integer({ min: 0, max: 9 }), fc.integer({ min: 0, max: LARGEST_COUNT }));

test('Redis has the count and the life that a model says, after a period was put back', {
  timeout: 240_000,
}, async () => {
  const stored = fc.option(fc.record({ points: count, at: second }), { nil: undefined });
  const given = {
    stored,
    recorded: fc.record({ points: count, at: second }),
    now: second,
    us: fc.constantFrom(0, 1, 999_999),
  };
  const [startS, endS] = [START_S - 60, START_S + 60];
  await fc.assert(
    fc.asyncProperty(fc.record(given), async ({ stored: had, recorded, now, us }) => {
      const nowUs = (START_S + now) * US_PER_SECOND + us;
      const before = had && { points: had.points, atS: START_S + had.at };
      const journal = { points: recorded.points, atS: START_S + recorded.at };
      const left = periodLeft(before, journal, [startS, endS], nowUs);
      const text = `${startS} ${endS} ${journal.atS} ${journal.points}`;
      const bytes = before === undefined ? Buffer.alloc(0) : countBytes(before);
      for (const keptMs of [20_000, 10_000_000_000]) await expectLeft(bytes, keptMs, nowUs, text, left);
    }),
    { numRuns: generatedCases(1_000), endOnFailure: true },
  );
});

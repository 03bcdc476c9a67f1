/** A settlement leaves periods, slots and values that nobody can read as a model says, to the last byte. */
import fc from 'fast-check';
import { Redis } from 'ioredis';
import { afterAll, expect, test } from 'vitest';
import { calendarOf, type Span } from '../../src/domain/limits/calendar.ts';
import { SLOTS_ENDING, settledKey } from '../../src/store/keys.ts';
import { PeriodClock } from '../../src/store/redis/period-clock.ts';
import { withScripts } from '../../src/store/redis/scripts.ts';
import { sendSettlements } from '../../src/store/redis/send-settlements.ts';
import { generatedCases } from '../fixtures/generated-cases.ts';
import { sharedRedisUrl, uniquePrefix } from '../fixtures/redis-url.ts';
import { WRONG_WINDOWS } from './settled-cases.ts';
import {
  type Count,
  idOfHeld,
  type Lease,
  type LeftPeriod,
  leasesAfter,
  MOST_COUNTED,
  settledPeriod,
  UNREAD,
} from './settled-periods.ts';

const client = withScripts(new Redis(sharedRedisUrl()));
afterAll(() => client.disconnect());

const KEPT_MS = 50_000;
/** A busy machine may let so much time pass between a write and a look. */
const LATE_MS = 4_000;
const calendar = calendarOf({ unit: 'hour', timeZone: 'UTC', startsOn: 1 });
/** In the middle of an hour. */
const UNIX_MS = 1_789_999_200_000 + 30 * 60_000;
const span = calendar.around(UNIX_MS);
const EDGES_MS = [span.startMs, span.endMs, span.nextEndMs];
const timeUs = fc
  .tuple(fc.constantFrom(...EDGES_MS), fc.constantFrom(-2_000_000, -1, 0, 1, 60_400_000))
  .map(([edgeMs, afterUs]) => edgeMs * 1_000 + afterUs);
const points = fc.oneof(
  fc.nat({ max: 30 }),
  fc.constant(3),
  fc.constantFrom(MOST_COUNTED - 1, MOST_COUNTED, MOST_COUNTED + 2),
);
const count = fc.option(fc.record({ points, atSeconds: timeUs.map((us) => Math.floor(us / 1_000_000)) }), {
  nil: undefined,
});
/** A value that nobody can read; nothing if it is empty. */
type Wrong = Buffer | 'a list';
const NOTHING = Buffer.alloc(0);
/** A count of the present, and a byte. */
const LONGER = Buffer.concat([bytesOfCount({ points: 5, atSeconds: UNIX_MS / 1_000 }), Buffer.alloc(1)]);
const HELD_MS = [1_000, 60_000, 60_001, 90_000];
const scenario = fc.record({
  nowUs: timeUs,
  chargedUs: fc.oneof(timeUs, fc.constant(0)),
  cost: fc.oneof(fc.integer({ min: 1, max: 12 }), fc.constant(3)),
  final: fc.oneof(fc.nat({ max: 24 }), fc.constantFrom(0, 2_000_000_000)),
  isMarked: fc.constantFrom(false, false, false, true),
  periods: fc.array(
    fc.record({
      count: fc.oneof(
        { weight: 5, arbitrary: count },
        fc.constantFrom<Wrong>('a list', Buffer.alloc(11, 1), LONGER),
      ),
      limit: fc.integer({ min: 1, max: 40 }),
    }),
    { maxLength: 2 },
  ),
  window: fc.constantFrom(...WRONG_WINDOWS),
  heldMs: fc.constantFrom(...HELD_MS),
  /** By how many seconds the id of a lease is beside the one of the charge; 'replica' for the lease of a replica. */
  leases: fc.array(
    fc.tuple(fc.constantFrom(0, 0, 1, -1, 10, -10, 'replica' as const), fc.constantFrom(0, 1, 5)),
    { maxLength: 4 },
  ),
  /** Bytes that are missing at the end of the leases. */
  cut: fc.constantFrom(0, 0, 0, 5),
  areSlotsWrong: fc.constantFrom(false, false, false, true),
});
type Given = typeof scenario extends fc.Arbitrary<infer T> ? T : never;

test('Redis keeps the periods and slots that a model says, and what cannot be read, after each settlement', {
  timeout: 240_000,
}, async () => {
  const prefix = uniquePrefix();
  let run = 0;
  await fc.assert(
    fc.asyncProperty(scenario, (given) => settleOnce(given, `${prefix}${run++}:1:{o}:`)),
    { numRuns: generatedCases(2_000), endOnFailure: true },
  );
});

async function settleOnce(given: Given, prefix: string): Promise<void> {
  const { nowUs, chargedUs, cost, final, periods, heldMs, isMarked } = given;
  const counted = periods.map(({ limit }, index) => ({
    key: `${prefix}period${index}:o`,
    limit,
    windowSeconds: 3_600,
    calendar,
  }));
  const window = { key: `${prefix}window:o`, limit: 50, windowSeconds: 10 };
  const slots = {
    ...window,
    key: `${prefix}held${SLOTS_ENDING}:o`,
    windowSeconds: 0,
    counts: 'concurrent' as const,
  };
  const leases = leasesOf(given);
  await put(window.key, given.window(nowUs));
  for (const [index, one] of periods.entries()) await put(counted[index]?.key ?? '', bytesOf(one.count));
  await put(slots.key, bytesOfLeases(leases, given));
  if (isMarked) await client.set(settledKey(window.key, 's-1'), '1', 'PX', KEPT_MS);
  const charge = { buckets: [window, ...counted, slots], cost, heldMs };
  const chargedAtUs = chargedUs === 0 ? undefined : chargedUs;
  const settlement = { charge, chargedAtUs, cost: final, refundsRequests: false, id: 's-1' };
  const clock = new PeriodClock(() => UNIX_MS);
  const options = { markedMs: 20_000, nowUs, clock };
  const [settled] = await sendSettlements(client, [settlement], options);

  const seen = { nowUs, chargedUs, more: isMarked ? 0 : final - cost };
  const left = periods.map((one) =>
    isCount(one.count) ? settledPeriod(one.count, namedSpan(given), { ...seen, limit: one.limit }) : UNREAD,
  );
  const outcome = isMarked ? 'already' : 'settled';
  expect(settled).toEqual({ outcome, buckets: [undefined, ...left.map(({ state }) => state), undefined] });
  await expectValue(window.key, given.window(nowUs), KEPT_MS);
  for (const [index, after] of left.entries())
    await expectPeriod(counted[index]?.key ?? '', periods[index]?.count, after);
  const read = given.cut === 0 ? leases : leases.slice(0, -1);
  const freed = isMarked ? read : leasesAfter(read, idOfHeld(chargedUs, heldMs));
  await expectValue(slots.key, bytesOfLeases([...freed, ...leases.slice(read.length)], given), KEPT_MS);
}

/** Where Redis is in other periods, it is asked once more. What was settled before is not. */
function namedSpan({ nowUs, isMarked }: Given): Span {
  const isMoved = nowUs < span.startMs * 1_000 || nowUs >= span.nextEndMs * 1_000;
  return isMoved && !isMarked ? calendar.around(nowUs / 1_000) : span;
}

async function expectPeriod(
  key: string,
  before: Count | Wrong | undefined,
  after: LeftPeriod,
): Promise<void> {
  if (after.count === undefined) await expectValue(key, bytesOf(before), KEPT_MS);
  else await expectValue(key, after.count === 'deleted' ? NOTHING : bytesOf(after.count), after.lifeMs);
}

function isCount(value: Count | Wrong | undefined): value is Count | undefined {
  return value === undefined || (typeof value === 'object' && 'points' in value);
}

function bytesOf(value: Count | Wrong | undefined): Wrong {
  if (!isCount(value)) return value;
  return value === undefined ? NOTHING : bytesOfCount(value);
}

function bytesOfCount({ points: counted, atSeconds }: Count): Buffer {
  const bytes = Buffer.alloc(12);
  bytes.writeBigUInt64BE(BigInt(counted) << 8n);
  bytes.writeUIntBE(atSeconds, 7, 5);
  return bytes;
}

function leasesOf({ chargedUs, heldMs, leases }: Given): readonly Lease[] {
  return leases.map(([beside, held]) => ({
    id: beside === 'replica' ? 'of-a-replica-123' : idOfHeld(chargedUs, heldMs + 1_000 * beside),
    held,
  }));
}

function bytesOfLeases(leases: readonly Lease[], { cut, areSlotsWrong }: Given): Wrong {
  if (areSlotsWrong) return 'a list';
  const bytes = Buffer.alloc(33 * leases.length, 7);
  for (const [index, { id, held }] of leases.entries()) {
    bytes.write(id, 33 * index, 'latin1');
    bytes.writeUInt32BE(held, 33 * index + 22);
  }
  return bytes.subarray(0, Math.max(0, bytes.length - cut));
}

async function put(key: string, value: Wrong): Promise<void> {
  if (value === 'a list') await client.rpush(key, value);
  else if (value.length > 0) await client.set(key, value);
  await client.pexpire(key, KEPT_MS);
}

async function expectValue(key: string, value: Wrong, lifeMs: number): Promise<void> {
  if (value === 'a list') {
    expect(await client.lrange(key, 0, -1)).toEqual([value]);
    return;
  }
  const leftMs = await client.pttl(key);
  expect((await client.getBuffer(key))?.toString('hex') ?? '', key).toBe(value.toString('hex'));
  if (value.length === 0) {
    expect([-2, 0, 1]).toContain(leftMs);
    return;
  }
  expect(leftMs, key).toBeLessThanOrEqual(lifeMs + 2);
  expect(leftMs, key).toBeGreaterThan(lifeMs - LATE_MS);
}

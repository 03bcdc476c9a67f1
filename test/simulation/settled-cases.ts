/** Settlements, and what Redis has before them. */
import fc from 'fast-check';
import { bytesOfEntries, type Entry } from './settled-values.ts';

const NOW_US = 1_790_000_000_000_000;
/** How long a key has left, if a program has written it without an end. */
export const WITHOUT_END = 0;

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

export const scenario = fc.constantFrom(0, 1, 49_999, 50_000).chain((afterUs) => {
  const nowUs = NOW_US + afterUs;
  const bucket = fc
    .record({
      windowSeconds: fc.constantFrom<number>(10, 20),
      keptMs: fc.constantFrom<number>(9_000, 45_000, WITHOUT_END),
    })
    .chain((one) => {
      const entries = fc.oneof(
        { weight: 6, arbitrary: entriesOf(one.windowSeconds * 1_000_000, nowUs) },
        fc.constant<Entry[]>([]),
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
    beside: fc.constantFrom<number>(0, 0, 0, -1, 1, -40_000, -100_000),
    isUnknown: fc.constantFrom(false, false, true),
    costs: fc.constantFrom<number>(-1, 0, 0, 1, -5),
    share: fc.constantFrom<number>(0, 0, 0.5, 1, 1.5, 3, 400_000_000),
    isSentTwice: fc.boolean(),
    isMarked: fc.constantFrom(false, false, false, true),
    endsAfterUs: fc.constantFrom<number | undefined>(undefined, undefined, -1, 0, 1, 30_000_000),
  });
});

export type Given = typeof scenario extends fc.Arbitrary<infer T> ? T : never;

/** One bucket with entries at times before the present, oldest first: the last one is named. */
function ofOne(limit: number, share: number, ...before: readonly (readonly [number, number])[]): Given {
  // Within a slot.
  const nowUs = NOW_US + 49_999;
  const entries: readonly Entry[] = before.map(([beforeUs, points]) => ({ atUs: nowUs - beforeUs, points }));
  return {
    nowUs,
    buckets: [{ windowSeconds: 10, limit, keptMs: WITHOUT_END, entries: [...entries] }],
    named: entries.length - 1,
    beside: 0,
    isUnknown: false,
    costs: 0,
    share,
    isSentTwice: false,
    isMarked: false,
    endsAfterUs: undefined,
  };
}

/** Bounds that few generated cases meet. */
export const BOUNDS: readonly Given[] = [
  // What is left has expired for longer than half a window.
  ofOne(20, 0, [16_000_000, 3], [1_000_000, 5]),
  // The charge has just expired.
  ofOne(20, 0, [10_000_000, 5]),
  // The bucket becomes full.
  ofOne(10, 2, [1, 5]),
  // It gets more than its limit, in the slot of the charge and at its time; and it has had as much, or more, before.
  ofOne(10, 3, [1, 5]),
  ofOne(10, 3, [0, 5]),
  ofOne(10, 2, [1, 10]),
  ofOne(10, 2, [1, 11]),
  ofOne(10, 2, [0, 11]),
  // It gets as much at the time of the charge, or more but little.
  ofOne(10, 2, [0, 5]),
  ofOne(5_000, 2, [2_000_000, 4_985], [1, 10]),
  // The charge has expired, and a later entry of its slot counts.
  { ...ofOne(2_500, 0, [9_999_999, 5]), beside: -1 },
  // The largest points that join an entry, and more than that.
  ofOne(2_500, 2, [1, 5]),
  ofOne(2_500, 2, [1, 6]),
  { ...ofOne(250, 0, [1, 1]), beside: -2 },
];

/** Values of windows whose parts do not agree: a total, and times before now with their points. The newest is the first. */
export const WRONG_WINDOWS = [
  () => 'a list' as const,
  () => Buffer.alloc(4, 1),
  () => Buffer.alloc(14, 1),
  (nowUs: number) => Buffer.concat([bytesOfWindow(6, [nowUs, 5], [nowUs - 1, 1]), Buffer.alloc(1)]),
  (nowUs: number) => bytesOfWindow(0, [nowUs, 0]),
  (nowUs: number) => bytesOfWindow(4, [nowUs, 5]),
  (nowUs: number) => bytesOfWindow(6, [nowUs, 5]),
  (nowUs: number) => bytesOfWindow(5, [nowUs, 5], [nowUs - 1_000, 1]),
  (nowUs: number) => bytesOfWindow(6, [nowUs, 5], [nowUs + 1, 1]),
  (nowUs: number) => bytesOfWindow(6, [nowUs, 5], [nowUs - 1, 0]),
  (nowUs: number) => bytesOfWindow(6, [nowUs, 5], [nowUs - 20_000_000, 9]),
];

function bytesOfWindow(total: number, ...entries: readonly [number, number][]): Buffer {
  return bytesOfEntries(
    entries.map(([atUs, points]) => ({ atUs, points })),
    total,
  );
}

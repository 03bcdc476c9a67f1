import fc from 'fast-check';
import { expect, it } from 'vitest';
import { OpenSketch } from '../../../../src/observe/usage/open-sketch.ts';
import { Sketch } from '../../../../src/observe/usage/sketch.ts';

const requests = fc.array(
  fc.record({ owner: fc.integer({ min: 0, max: 40 }).map(String), points: fc.nat(10), refused: fc.nat(1) }),
  { maxLength: 400 },
);

/** An admitted request. */
const requestOf = (points: number) => ({ points, requests: 1, refused: 0 });

/** What was really counted, by owner. */
function exact(
  all: readonly { readonly owner: string; readonly points: number; readonly refused: number }[],
) {
  const weights = new Map<string, number>();
  for (const { owner, points, refused } of all)
    weights.set(owner, (weights.get(owner) ?? 0) + points + refused);
  return weights;
}

function expectBounds(sketch: Sketch, weights: ReadonlyMap<string, number>): void {
  for (const [owner, weight] of weights) {
    const counts = sketch.owners.get(owner);
    const counted = counts === undefined ? 0 : counts.points + counts.refused;
    expect(counted).toBeLessThanOrEqual(weight);
    expect(weight).toBeLessThanOrEqual(counted + (counts?.error ?? sketch.floor));
  }
}

it('no owner has less than its counts, or more than its counts and its error', () => {
  fc.assert(
    fc.property(requests, fc.integer({ min: 1, max: 60 }), (all, capacity) => {
      const sketch = new Sketch(capacity);
      for (const { owner, points, refused } of all) sketch.add(owner, { points, requests: 1, refused });
      expect(sketch.owners.size).toBeLessThanOrEqual(2 * capacity);
      expectBounds(sketch, exact(all));
    }),
  );
});

it('sketches that are merged keep these bounds', () => {
  fc.assert(
    fc.property(fc.array(requests, { maxLength: 4 }), fc.integer({ min: 1, max: 60 }), (parts, capacity) => {
      const sum = new Sketch(capacity);
      for (const part of parts) {
        const sketch = new Sketch(capacity);
        for (const { owner, points, refused } of part) sketch.add(owner, { points, requests: 1, refused });
        sum.merge(sketch);
      }
      expectBounds(sum, exact(parts.flat()));
    }),
  );
});

it('open sketches that are merged keep these bounds', () => {
  fc.assert(
    fc.property(fc.array(requests, { maxLength: 4 }), fc.integer({ min: 1, max: 60 }), (parts, capacity) => {
      const owners = Array.from({ length: 41 }, (_, id) => ({ id: String(id), counts: undefined }));
      const sum = new Sketch(capacity);
      for (const part of parts) {
        const sketch = new OpenSketch(capacity);
        for (const { owner, points, refused } of part)
          sketch.add(owners[Number(owner)] ?? expect.fail(), { points, requests: 1, refused });
        expect(sketch.owners.length).toBeLessThanOrEqual(2 * capacity);
        sum.merge(sketch);
        sketch.close();
      }
      expectBounds(sum, exact(parts.flat()));
    }),
  );
});

it('an open sketch keeps the owners that another one would keep', () => {
  fc.assert(
    fc.property(requests, fc.integer({ min: 1, max: 30 }), (all, capacity) => {
      const owners = Array.from({ length: 41 }, (_, id) => ({ id: String(id), counts: undefined }));
      const [open, other] = [new OpenSketch(capacity), new Sketch(capacity)];
      for (const { owner, points, refused } of all) {
        const added = { points, requests: 1, refused };
        open.add(owners[Number(owner)] ?? expect.fail(), added);
        other.add(owner, added);
      }
      const sum = new Sketch(Number.POSITIVE_INFINITY);
      sum.merge(open);
      expect([...sum.owners]).toEqual([...other.owners]);
      expect(sum.floor).toBe(other.floor);
    }),
  );
});

it('is exact for as many owners as it has room for', () => {
  const sketch = new Sketch(100);
  for (let index = 0; index < 1_000; index++)
    sketch.add(String(index % 100), { points: 3, requests: 1, refused: index % 2 });
  expect(sketch.floor).toBe(0);
  expect(sketch.owners.get('7')).toEqual({ points: 30, requests: 10, refused: 10, error: 0 });
});

it('finds the heavy owners among a flood of others', () => {
  const sketch = new Sketch(100);
  for (let index = 0; index < 50_000; index++) {
    sketch.add(`flood${index}`, requestOf(1));
    if (index % 50 === 0) sketch.add(`heavy${(index / 50) % 5}`, requestOf(10));
  }
  for (let index = 0; index < 5; index++) {
    const { points = 0, error = 0 } = sketch.owners.get(`heavy${index}`) ?? {};
    expect(points + error).toBeGreaterThanOrEqual(2_000);
    expect(points).toBeLessThanOrEqual(2_000);
  }
});

it('keeps the heaviest owners when it is full, and of equal ones the first', () => {
  const weights = fc.array(fc.nat(4), { minLength: 20, maxLength: 20 });
  fc.assert(
    fc.property(weights, (all) => {
      const sketch = new Sketch(10);
      for (const [index, points] of all.entries())
        sketch.add(String(index), { points, requests: 0, refused: 0 });
      const heaviest = [...all.entries()].toSorted(([, a], [, b]) => b - a).slice(0, 10);
      expect([...sketch.owners.keys()]).toEqual(
        heaviest.map(([index]) => String(index)).sort((a, b) => +a - +b),
      );
    }),
  );
});

import { expect, it } from 'vitest';
import { type Fact, type FactKind, Facts } from '../../../src/facts/facts.ts';

interface Named extends Fact {
  readonly id: string;
  readonly value: string;
}

const kind = (most: number): FactKind<Named> => ({
  topic: 'limits',
  plural: 'live limits',
  metric: 'limit',
  most,
  keyOf: ({ id }) => id,
  write: ({ id, value, atMs, untilMs }) => JSON.stringify([id, value, atMs, untilMs]),
  read: () => undefined,
});

const fact = (value: string, atMs: number, untilMs = 1_000, id = 'a'): Named => ({
  id,
  value,
  atMs,
  untilMs,
});

function orders<T>(items: readonly T[]): T[][] {
  if (items.length === 0) return [[]];
  return items.flatMap((item, at) => orders(items.toSpliced(at, 1)).map((rest) => [item, ...rest]));
}

it('all replicas keep the same fact, whatever the order of arrival, though several are of one millisecond', () => {
  const made = [fact('x', 5), fact('y', 5), fact('z', 5), fact('w', 4, 9_000)];
  const kept = orders(made).map((order) => {
    const facts = new Facts(kind(10));
    for (const one of [...order, ...order]) facts.add(one, 0);
    return facts.find('a', 10)?.value;
  });
  expect(new Set(kept)).toEqual(new Set(['x']));
});

it('what is superseded or has expired is not written to the record again', () => {
  const facts = new Facts(kind(10));
  for (const one of [fact('x', 1), fact('y', 2), fact('z', 1, 50, 'b')]) facts.add(one, 0);
  const texts = (nowMs: number) => facts.missingFrom(new Set(), nowMs).map(({ text }) => text);
  expect(texts(10)).toEqual(['["a","y",2,1000]', '["b","z",1,50]']);
  expect(texts(50)).toEqual(['["a","y",2,1000]']);
  expect(facts.missingFrom(new Set(['["a","y",2,1000]']), 50)).toEqual([]);
});

it('beyond the cap the earliest give way, and what has expired is removed', () => {
  const facts = new Facts(kind(80));
  for (let at = 1; at <= 10_000; at++) facts.add(fact('x', at, 1e9, `id${at}`), 0);
  expect(facts.size).toBeLessThanOrEqual(90);
  expect(facts.find('id10000', 0)).toBeDefined();
  expect(facts.find('id1', 0)).toBeUndefined();
  facts.add(fact('x', 1, 2e9), 1e9);
  expect(facts.size).toBe(1);
});

it('adding a fact does not look at all others', () => {
  let looks = 0;
  const facts = new Facts(kind(1_000_000));
  for (let at = 1; at <= 5_000; at++) {
    const { untilMs, ...rest } = fact('x', at, 1e9, `id${at}`);
    const observed = Object.defineProperty({ ...rest, untilMs }, 'untilMs', {
      get() {
        looks += 1;
        return untilMs;
      },
    });
    facts.add(observed, at / 10);
  }
  expect(looks).toBeLessThan(20 * 5_000);
});

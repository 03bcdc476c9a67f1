import { expect, it } from 'vitest';
import { recordFacts } from '../../../src/facts/fact-record.ts';
import { type Fact, type FactKind, Facts, recordedFact } from '../../../src/facts/facts.ts';
import { LIVE_LIMITS, type LiveLimit } from '../../../src/facts/live-limits.ts';
import type { MessageRecord, RecordedMessage } from '../../../src/store/shared-store.ts';

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

it('beyond the cap those that end first give way, and each look at the same record leaves the same', () => {
  const most = 80;
  const record = Array.from({ length: 3 * most }, (_, at) => fact('x', at + 1, 9_000 - (at % 7), `id${at}`));
  const facts = new Facts(kind(most));
  const look = () => {
    let changes = 0;
    for (const one of record) if (!facts.has(kind(most).write(one)) && facts.add(one, 0)) changes += 1;
    return changes;
  };
  expect(look()).toBeGreaterThanOrEqual(most);
  const kept = facts.inForce(0);
  expect(look() + look()).toBe(0);
  expect(facts.inForce(0)).toEqual(kept);
  const dropped = record.filter(({ id }) => facts.find(id, 0) === undefined);
  const firstEnd = Math.min(...kept.map(({ untilMs }) => untilMs));
  expect(Math.max(...dropped.map(({ untilMs }) => untilMs))).toBeLessThanOrEqual(firstEnd);
  // What changes a fact that is kept takes no more room.
  const [first] = kept;
  if (first === undefined) throw new Error('nothing is kept');
  expect(facts.add({ ...first, atMs: 5_000, untilMs: 100 }, 0)).toBe(true);
  expect(facts.find(first.id, 0)?.untilMs).toBe(100);
});

it('says whether there is room for what is new; what is known needs none', () => {
  const facts = new Facts(kind(2));
  for (const id of ['a', 'b']) facts.add(fact('x', 1, id === 'a' ? 50 : 1_000, id), 0);
  expect(facts.hasRoomFor(['b'], 0)).toBe(true);
  expect(facts.hasRoomFor(['c'], 49)).toBe(false);
  expect(facts.hasRoomFor(['c'], 50)).toBe(true);
  expect(facts.hasRoomFor(['c', 'd'], 50)).toBe(false);
});

it('what was replaced does not come back when what replaced it has ended', () => {
  const replaced = fact('x', 1, 1_000);
  const replacing = fact('y', 2, 50);
  for (const order of orders([replaced, replacing])) {
    const facts = new Facts(kind(10));
    for (const one of order) facts.add(one, 10);
    expect(facts.findInForce('a', 49)?.value).toBe('y');
    expect(facts.add(replaced, 500)).toBe(false);
    expect([facts.find('a', 500), facts.inForce(500)]).toEqual([undefined, []]);
    // A record that has lost it needs it for as long.
    expect(facts.missingFrom(new Set(), 999)).toEqual([{ text: '["a","y",2,50]', untilMs: 1_000 }]);
    expect(facts.missingFrom(new Set(), 1_000)).toEqual([]);
    facts.add(fact('z', 3, 9_000, 'b'), 1_000);
    expect(facts.size).toBe(1);
  }
});

it('a later fact that has ended is kept, if an earlier one that has not ended arrives just then', () => {
  const facts = new Facts(kind(10));
  facts.add(fact('y', 2, 5_000), 10);
  for (const nowMs of [6_000, 7_000, 8_000]) expect(facts.add(fact('x', 1, 9_000), nowMs)).toBe(false);
  expect(facts.find('a', 8_000)).toBeUndefined();
});

it('a third fact keeps the first from coming back as well', () => {
  const facts = new Facts(kind(10));
  for (const one of [fact('x', 1, 1_000), fact('y', 2, 50), fact('z', 60, 70)]) facts.add(one, one.atMs);
  expect(facts.findKept('a')).toMatchObject({ value: 'z', untilMs: 70, keptUntilMs: 1_000 });
});

it('a replica that starts later learns from the record what has ended and how long it is needed', () => {
  const facts = new Facts(kind(10));
  const added: string[] = [];
  facts.onAdded = ({ value }) => added.push(value);
  const ended = fact('y', 2, 50);
  expect(facts.add(recordedFact(ended, 1_000), 100)).toBe(false);
  expect(facts.add(fact('x', 1, 1_000), 100)).toBe(false);
  expect([facts.find('a', 100), added]).toEqual([undefined, []]);

  const late = new Facts(kind(10));
  late.add(ended, 10);
  expect(late.has('["a","y",2,50]', 1_000)).toBe(true);
  expect(late.add(fact('x', 1, 1_000), 100)).toBe(false);
});

it('a replica that was away learns of a fact that has ended, and no longer applies the one that it replaced', () => {
  const facts = new Facts(kind(10));
  facts.add(fact('x', 1, 1_000), 10);
  expect(facts.add(recordedFact(fact('y', 2, 50), 1_000), 100)).toBe(true);
  expect(facts.find('a', 100)).toBeUndefined();
});

it('a fact that is made keeps the record from forgetting it before all that it replaces', async () => {
  const published: RecordedMessage[] = [];
  const replaced: string[] = [];
  const record = {
    nowMs: async () => 60,
    publish: async (messages: readonly RecordedMessage[], texts: readonly string[] = []) => {
      published.push(...messages);
      replaced.push(...texts);
      return { received: 1, notPublished: undefined };
    },
  };
  const known = new Facts(kind(10));
  for (const one of [fact('x', 1, 1_000), fact('y', 2, 50)]) known.add(one, 10);
  const currents: (readonly Named[])[] = [];
  const making = {
    keys: ['a'],
    make(atMs: number, current: readonly Named[]) {
      currents.push(current);
      return [fact('z', atMs, 70)];
    },
  };
  await recordFacts(record as unknown as MessageRecord, kind(10), making, [known.findKept('a') as Named]);
  expect(currents).toEqual([[]]);
  expect(published).toEqual([{ text: '["a","z",60,70]', untilMs: 1_000 }]);
  expect(replaced).toEqual(['["a","y",2,50]']);
});

it('a fact that is made replaces what replicas of 0.3.0 have written of the earlier one', async () => {
  const earlier: LiveLimit = {
    bucket: 'account-read',
    id: 'acct_1',
    limit: 500,
    atMs: 10,
    untilMs: 3_600_000,
    why: 'launch',
    by: 'alice',
    replica: 'weir-0',
    filed: 100,
  };
  const replaced: string[] = [];
  const record = {
    nowMs: async () => 60,
    publish: async (_: readonly RecordedMessage[], texts: readonly string[] = []) => {
      replaced.push(...texts);
      return { received: 1, notPublished: undefined };
    },
  } as unknown as MessageRecord;
  const making = {
    keys: [LIVE_LIMITS.keyOf(earlier)],
    make: (atMs: number) => [{ ...earlier, limit: 600, atMs, untilMs: atMs + 60_000 }],
  };
  await recordFacts(record, LIVE_LIMITS, making, [earlier]);
  const text =
    '{"bucket":"account-read","id":"acct_1","limit":500,"atMs":10,"untilMs":3600000,"why":"launch","by":"alice"';
  expect(replaced).toEqual([`${text},"replica":"weir-0","filed":100}`, `${text}}`]);
});

it('a record with as many facts as are kept takes no further one, but a replacement', async () => {
  const published: string[] = [];
  const kept = [fact('x', 1, 100, 'a'), fact('y', 1, 100, 'b')];
  const readable: FactKind<Named> = {
    ...kind(2),
    read: (text) => kept.find((one) => kind(2).write(one) === text),
  };
  const record = {
    nowMs: async () => 60,
    messages: async () => kept.map((one) => ({ text: readable.write(one), untilMs: one.untilMs })),
    publish: async (messages: readonly RecordedMessage[]) => {
      published.push(...messages.map(({ text }) => text));
      return { received: 1, notPublished: undefined };
    },
  } as unknown as MessageRecord;
  const make = (id: string) =>
    recordFacts(record, readable, {
      keys: [id],
      readsRecord: true,
      make: (atMs) => [fact('z', atMs, 200, id)],
    });
  await expect(make('c')).rejects.toThrow(
    'Nothing was changed: at most 2 live limits are kept, and there is no room for another. ' +
      'What is removed or replaced takes room until it would have ended.',
  );
  await make('b');
  expect(published).toEqual(['["b","z",60,200]']);
});

it('requests are served while a long record is read for a change', async () => {
  const messages = Array.from({ length: 10_000 }, (_, index) => ({ text: `other ${index}`, untilMs: 100 }));
  const readable: FactKind<Named> = { ...kind(100_000), read: (text) => fact('x', 1, 100, text) };
  const record = {
    nowMs: async () => 60,
    messages: async () => messages,
    publish: async () => ({ received: 1, notPublished: undefined }),
  } as unknown as MessageRecord;
  let turns = 0;
  const count = () => {
    turns += 1;
    turn = setImmediate(count);
  };
  let turn = setImmediate(count);
  await recordFacts(record, readable, {
    keys: ['a'],
    readsRecord: true,
    make: (atMs) => [fact('z', atMs, 200, 'a')],
  });
  clearImmediate(turn);
  expect(turns).toBeGreaterThanOrEqual(10);
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

import { expect, it } from 'vitest';
import { onceEach, type RecordedChange } from '../../../../src/admin/history/change.ts';

const MINUTE_MS = 60_000;

const change = (more: Partial<RecordedChange>): RecordedChange => ({
  atMs: 1_000,
  kind: 'store.lost',
  subject: 'store',
  text: 'does not answer',
  by: null,
  why: null,
  replica: 'weir-0',
  ...more,
});

const timesOf = async (changes: readonly RecordedChange[]) =>
  (await onceEach(changes)).map(({ atMs }) => atMs);

it('two processes with one host name that lose the store in the same millisecond are two entries', async () => {
  expect(await onceEach([change({ instance: 'a' }), change({ instance: 'b' })])).toHaveLength(2);
});

it('a change that several replicas write with its exact time is one entry', async () => {
  const made = change({ kind: 'block.made', replica: null });
  expect(await onceEach([made, made])).toEqual([made]);
  expect(await timesOf([made, { ...made, atMs: 1_001 }])).toEqual([1_001, 1_000]);
  const known = { ...made, replica: 'weir-0' };
  expect(await onceEach([known, known])).toEqual([known]);
  expect(await onceEach([made, known])).toEqual([known]);
});

it('what several replicas notice within two minutes is one entry of none of them, at the first time', async () => {
  const noticed = (noticedBy: string, atMs: number) =>
    change({ kind: 'limits.changed', noticedBy, atMs, replica: noticedBy });
  const all = [noticed('b', 1_000 + MINUTE_MS), noticed('a', 1_000), noticed('c', 1_000 + 3 * MINUTE_MS)];
  expect(await onceEach(all)).toMatchObject([
    { atMs: 1_000 + 3 * MINUTE_MS, replica: 'c' },
    { atMs: 1_000, replica: null },
  ]);
});

it('a replica that notices the same twice has two entries', async () => {
  const noticed = (atMs: number) => change({ kind: 'limits.changed', noticedBy: 'a', atMs });
  expect(await timesOf([noticed(1_000), noticed(2_000)])).toEqual([2_000, 1_000]);
});

it('a text and none are not one, nor is what moves from one member to the next', async () => {
  const members = [
    { subject: null },
    { subject: '' },
    { subject: 'store', by: 'a' },
    { subject: 'store', why: 'a' },
  ];
  expect(await onceEach(members.map((one) => change({ noticedBy: 'a', ...one })))).toHaveLength(4);
  const texts = [
    { subject: null, text: 'a', by: null },
    { subject: '', text: '', by: 'a' },
  ];
  expect(await onceEach(texts.map(change))).toHaveLength(2);
});

it('requests are served while thousands of changes are compared', async () => {
  const all = Array.from({ length: 10_000 }, (_, index) => change({ atMs: index }));
  let turns = 0;
  const count = () => {
    turns += 1;
    turn = setImmediate(count);
  };
  let turn = setImmediate(count);
  expect(await onceEach(all)).toHaveLength(10_000);
  clearImmediate(turn);
  expect(turns).toBeGreaterThanOrEqual(9);
});

it('a loss that was written twice is one entry, although the second has another time of writing', async () => {
  const lost = change({ kind: 'replica.lost', instance: 'c', noticedBy: 'a', writtenMs: 6_000 });
  const byOther = { ...lost, atMs: 1_400, noticedBy: 'b', writtenMs: 6_500 };
  expect(await timesOf([lost, byOther, { ...lost, writtenMs: 8_000 }])).toEqual([1_000]);
  expect(await timesOf([lost, { ...lost, atMs: 20_000, writtenMs: 25_000 }])).toEqual([20_000, 1_000]);
});

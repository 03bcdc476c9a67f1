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

const timesOf = (changes: readonly RecordedChange[]) => onceEach(changes).map(({ atMs }) => atMs);

it('two processes with one host name that lose the store in the same millisecond are two entries', () => {
  expect(onceEach([change({ instance: 'a' }), change({ instance: 'b' })])).toHaveLength(2);
});

it('a change that several replicas write with its exact time is one entry', () => {
  const made = change({ kind: 'block.made', replica: null });
  expect(onceEach([made, made])).toEqual([made]);
  expect(timesOf([made, { ...made, atMs: 1_001 }])).toEqual([1_001, 1_000]);
  const known = { ...made, replica: 'weir-0' };
  expect(onceEach([known, known])).toEqual([known]);
  expect(onceEach([made, known])).toEqual([known]);
});

it('what several replicas notice within two minutes is one entry of none of them, at the first time', () => {
  const noticed = (noticedBy: string, atMs: number) =>
    change({ kind: 'limits.changed', noticedBy, atMs, replica: noticedBy });
  const all = [noticed('b', 1_000 + MINUTE_MS), noticed('a', 1_000), noticed('c', 1_000 + 3 * MINUTE_MS)];
  expect(onceEach(all)).toMatchObject([
    { atMs: 1_000 + 3 * MINUTE_MS, replica: 'c' },
    { atMs: 1_000, replica: null },
  ]);
});

it('a replica that notices the same twice has two entries', () => {
  const noticed = (atMs: number) => change({ kind: 'limits.changed', noticedBy: 'a', atMs });
  expect(timesOf([noticed(1_000), noticed(2_000)])).toEqual([2_000, 1_000]);
});

it('a loss that was written twice is one entry, although the second has another time of writing', () => {
  const lost = change({ kind: 'replica.lost', instance: 'c', noticedBy: 'a', writtenMs: 6_000 });
  const byOther = { ...lost, atMs: 1_400, noticedBy: 'b', writtenMs: 6_500 };
  expect(timesOf([lost, byOther, { ...lost, writtenMs: 8_000 }])).toEqual([1_000]);
  expect(timesOf([lost, { ...lost, atMs: 20_000, writtenMs: 25_000 }])).toEqual([20_000, 1_000]);
});

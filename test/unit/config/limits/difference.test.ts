import { expect, it } from 'vitest';
import { differenceOf } from '../../../../src/config/files/limits/difference.ts';
import type { GivenLimit, Limits, RowLimits } from '../../../../src/domain/limits/limits.ts';
import { contractRows, type LimitRow } from '../../../../src/domain/limits/rows.ts';

const given = (limit: number): GivenLimit => ({ limit, shadow: false });

function limits(accounts: Readonly<Record<string, RowLimits>>, accountRead = 500): Limits {
  const defaults = Object.fromEntries(contractRows(1).map(({ name }) => [name, given(1_000)]));
  return {
    windowSeconds: 1,
    rows: contractRows(1),
    defaults: { ...defaults, 'account-read': given(accountRead) },
    plans: new Map(),
    unwritten: [],
    accounts: new Map(Object.entries(accounts).map(([id, own]) => [id, { limits: own }])),
    organizations: new Map(),
    addresses: new Map(),
    principals: new Map(),
  };
}

it('names what was added, removed and changed', async () => {
  const before = limits({
    gone: { 'account-read': given(1) },
    same: { 'account-read': given(2), 'account-write': given(3) },
    acct_1: { 'account-read': given(4), 'account-write': given(5) },
  });
  const untilMs = Date.parse('2030-02-01T00:00:00Z');
  const after = limits(
    {
      same: { 'account-read': given(2), 'account-write': given(3) },
      acct_1: { 'account-read': { limit: 4, shadow: true }, 'account-write': { ...given(6), untilMs } },
      fresh: { 'account-read': given(7) },
    },
    600,
  );
  expect(await differenceOf(before, after)).toEqual({
    added: 1,
    removed: 1,
    changed: 3,
    difference: [
      {
        change: 'changed',
        scope: 'account',
        bucket: 'account-read',
        from: { limit: 500 },
        to: { limit: 600 },
      },
      {
        change: 'changed',
        scope: 'account',
        id: 'acct_1',
        bucket: 'account-read',
        from: { limit: 4 },
        to: { limit: 4, shadow: true },
      },
      {
        change: 'changed',
        scope: 'account',
        id: 'acct_1',
        bucket: 'account-write',
        from: { limit: 5 },
        to: { limit: 6, until: '2030-02-01T00:00:00.000Z' },
      },
      { change: 'added', scope: 'account', id: 'fresh', bucket: 'account-read', to: { limit: 7 } },
      { change: 'removed', scope: 'account', id: 'gone', bucket: 'account-read', from: { limit: 1 } },
    ],
  });
});

it('names a limit whose counts are no longer recorded, and not what is only written in other words', async () => {
  const before = limits({});
  const month = (durable?: boolean): LimitRow => ({
    name: 'month',
    headerName: 'month',
    scope: 'account',
    counts: 'points',
    windowSeconds: 31 * 86_400,
    durable,
    selection: {},
    isContract: false,
  });
  const withRow = (row: LimitRow) => ({ ...before, rows: [...before.rows, row] });
  const { difference } = await differenceOf(withRow(month()), withRow(month(false)));
  expect(difference).toMatchObject([{ change: 'changed', bucket: 'month', to: { durable: false } }]);
  const { difference: none } = await differenceOf(withRow(month()), withRow(month(true)));
  expect(none).toEqual([]);
});

it('names a changed window', async () => {
  const before = limits({});
  expect(await differenceOf(before, { ...before, windowSeconds: 60 })).toEqual({
    added: 0,
    removed: 0,
    changed: 0,
    windowSeconds: { from: 1, to: 60 },
    difference: [],
  });
});

it('lists a bounded number of changes, and counts all', async () => {
  const many = Object.fromEntries(
    Array.from({ length: 5_000 }, (_, index) => [`acct_${index}`, { 'account-read': given(9) }]),
  );
  const { added, difference, omitted } = await differenceOf(limits({}), limits(many));
  expect({ added, listed: difference.length, omitted }).toEqual({ added: 5_000, listed: 20, omitted: 4_980 });
});

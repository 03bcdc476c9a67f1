import { expect, it } from 'vitest';
import { fillsOf } from '../../../../src/admin/why/fills.ts';
import type { LimitRow } from '../../../../src/domain/limits/rows.ts';
import { UsageBatch } from '../../../../src/observe/usage/batch.ts';
import { requestOf } from '../../../fixtures/request-context.ts';

const ROW = { name: 'account-read', scope: 'account', counts: 'points', selection: {} };

it('what was charged in the same millisecond, but before, has filled the bucket', async () => {
  const batch = new UsageBatch();
  for (const chargeAskedMs of [1_000.1, 1_000.2, 1_000.3, 1_000.4]) {
    batch.requestFinished(Object.assign(requestOf('acct_1'), { chargeAskedMs, cost: 1 }), 1_020);
  }
  const question = {
    processTag: 1,
    number: 1,
    bucket: 'account-read',
    owner: 'acct_1',
    hashTag: 'acct_1',
    atMs: 1_030,
    fromMs: 500,
    toMs: 1_000,
  };
  const requestsBefore = async (asked: object) => {
    const [spent] = await fillsOf(
      [{ ...question, ...asked }],
      batch.charges,
      [ROW as unknown as LimitRow],
      0,
    );
    return spent?.[0]?.requests;
  };
  expect(await requestsBefore({ askedMs: 1_000.35 })).toBe(3);
  expect(await requestsBefore({ askedMs: 1_000.05 })).toBeUndefined();
  // Asked by another replica, which may have rounded its time down.
  expect(await requestsBefore({ toMs: 999 })).toBe(4);
  expect(await requestsBefore({ toMs: 998 })).toBeUndefined();
});

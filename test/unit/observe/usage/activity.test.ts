import { expect, it } from 'vitest';
import { Activity } from '../../../../src/observe/usage/activity.ts';
import { UsageBatch } from '../../../../src/observe/usage/batch.ts';
import type { RequestContext } from '../../../../src/stages/request-context.ts';
import { LIST, requestOf } from '../../../fixtures/request-context.ts';

const MINUTE_MS = 60_000;

function request(account: string, operation = 'list', cost = 1, organization?: string): RequestContext {
  return Object.assign(requestOf(account, organization), { operation: { ...LIST, id: operation, cost } });
}

it('each window holds its own length of time', () => {
  const batch = new UsageBatch();
  const activity = new Activity(batch);
  const points = (nowMs: number) => {
    const { windows } = activity.recentOf('account', 'a', nowMs) ?? expect.fail('a is forgotten');
    return Object.values(windows).map((counts) => counts.points);
  };
  batch.requestFinished(request('a', 'list', 7), 5_000);
  expect(points(5_000)).toEqual([7, 7, 7]);
  expect(points(14_999)).toEqual([7, 7, 7]);
  expect(points(15_000)).toEqual([0, 7, 7]);
  expect(points(MINUTE_MS)).toEqual([0, 0, 7]);
  batch.requestFinished(request('a', 'list', 2), 5 * MINUTE_MS);
  expect(points(5 * MINUTE_MS)).toEqual([2, 2, 9]);
  expect(points(10 * MINUTE_MS)).toEqual([0, 0, 2]);
  expect(points(60 * MINUTE_MS)).toEqual([0, 0, 0]);
});

it('operations are forgotten after ten minutes, and the rare ones are counted together', () => {
  const batch = new UsageBatch();
  const activity = new Activity(batch);
  const operations = (nowMs: number) => activity.recentOf('account', 'a', nowMs)?.operations ?? [];
  batch.requestFinished(request('a', 'early', 5), 0);
  for (let index = 0; index < 100; index++) batch.requestFinished(request('a', `op${index}`), 5 * MINUTE_MS);
  expect(operations(5 * MINUTE_MS)).toContainEqual({
    operation: 'early',
    points: 5,
    requests: 1,
    refused: 0,
  });
  expect(operations(5 * MINUTE_MS).find(({ operation }) => operation === 'others')?.requests).toBe(60);
  expect(operations(5 * MINUTE_MS).reduce((sum, { points }) => sum + points, 0)).toBe(105);
  expect(operations(20 * MINUTE_MS)).toEqual([]);
});

it('memory is bounded, and who is active is remembered', () => {
  const batch = new UsageBatch();
  const activity = new Activity(batch);
  for (let index = 0; index < 20_000; index++) {
    batch.requestFinished(request(`idle${index}`), index);
    if (index % 1_000 === 0) batch.requestFinished(request('busy'), index);
  }
  const isKnown = (id: string) => activity.recentOf('account', id, 20_000) !== undefined;
  expect(activity.recentOf('account', 'busy', 20_000)?.windows['10m'].requests).toBe(20);
  expect(Array.from({ length: 20_000 }, (_, index) => `idle${index}`).filter(isKnown).length).toBeLessThan(
    5_001,
  );
});

it('an Account that changes its Organization is found in the new one', () => {
  const batch = new UsageBatch();
  const activity = new Activity(batch);
  batch.requestFinished(request('a', 'list', 1, 'old'), 0);
  batch.requestFinished(request('a', 'list', 1, 'new'), 1);
  expect(activity.payerOf('account', 'a')?.organization).toBe('new');
  expect(activity.recentOf('organization', 'old', 1)?.windows['10s'].points).toBe(1);
});

it('the operations of two periods are 50 at most, and lose nothing', () => {
  const batch = new UsageBatch();
  const activity = new Activity(batch);
  for (const [period, nowMs] of [4 * MINUTE_MS, 6 * MINUTE_MS].entries())
    for (let index = 0; index < 60; index++)
      batch.requestFinished(request('a', `op${period}.${index}`, index + 1), nowMs);
  const { operations = [] } = activity.recentOf('account', 'a', 6 * MINUTE_MS) ?? {};
  expect(operations).toHaveLength(50);
  expect(operations.reduce((sum, { points }) => sum + points, 0)).toBe(60 * 61);
  expect(operations.reduce((sum, { requests }) => sum + requests, 0)).toBe(120);
  expect(operations.filter(({ operation }) => operation === 'others')).toHaveLength(1);
  const points = operations.map((one) => one.points);
  expect(points).toEqual(points.toSorted((a, b) => b - a));
});

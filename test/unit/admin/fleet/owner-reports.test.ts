import { pino } from 'pino';
import { Type } from 'typebox';
import { expect, it } from 'vitest';
import { asAsked, asPublication } from '../../../../src/admin/fleet/owner-report.ts';
import { OwnerReports } from '../../../../src/admin/fleet/owner-reports.ts';
import { Refusals } from '../../../../src/admin/fleet/refusals.ts';
import { SCOPE_NAMES } from '../../../../src/domain/limits/scopes.ts';
import { Ignored } from '../../../../src/facts/ignored.ts';
import { matching } from '../../../../src/facts/message-bounds.ts';
import { Activity } from '../../../../src/observe/usage/activity.ts';
import { UsageBatch } from '../../../../src/observe/usage/batch.ts';
import type { Board } from '../../../../src/store/shared-store.ts';
import { LIST, requestOf } from '../../../fixtures/request-context.ts';

function boardInto(posted: string[]): Board {
  return {
    post: async (text) => void posted.push(text),
    read: async () => ({ texts: new Map(), leftOut: 0 }),
    close: async () => {},
  };
}

/** Reports of a replica, and what it has posted on its boards. */
function reportsOf(activity: Activity) {
  const [asked, reported]: [string[], string[]] = [[], []];
  const sources = {
    activity,
    refusals: new Refusals(Date.now),
    requests: { find: () => [] },
    nowMs: Date.now,
    ignored: new Ignored('summary', { sharedIgnored() {} }, pino({ enabled: false })),
  };
  const boards = { asked: boardInto(asked), reports: boardInto(reported) };
  return { reports: new OwnerReports('replica', sources, boards), asked, reported };
}

it('what a replica publishes can be read, whatever an operation is called and an operator asks for', async () => {
  const batch = new UsageBatch();
  const operation = { ...LIST, id: 'list\u0007\u202ethings' };
  batch.requestFinished(Object.assign(requestOf('acct_1'), { operation }), performance.now());
  const { reports, asked, reported } = reportsOf(new Activity(batch));
  await reports.sumOf({ scope: 'account', id: 'acct_1' }, false);
  for (const id of ['acct_1\u202e', '\ud83d', 'a'.repeat(300)])
    await reports.sumOf({ scope: 'account', id }, false);
  const latest = () => asPublication(JSON.parse(reported.at(-1) ?? '{}'));
  await expect.poll(() => latest()?.reports.map(({ owner }) => owner.id)).toEqual(['acct_1']);
  expect(latest()?.reports[0]?.operations).toMatchObject([{ operation: 'list\\u0007\\u202ethings' }]);
  expect(asAsked(JSON.parse(asked.at(-1) ?? '{}'))).toEqual([{ scope: 'account', id: 'acct_1' }]);
  await reports.close();
});

it('a list that asks about requests can be read by replicas of 0.3.0, which refuse it for a scope that they do not know', async () => {
  const { reports, asked, reported } = reportsOf(new Activity(new UsageBatch()));
  await reports.sumOf({ scope: 'account', id: 'acct_1' }, false);
  await reports.requestsWith('acct_1');
  const scopes = SCOPE_NAMES.map((scope) => Type.Literal(scope));
  const asOwners = matching(Type.Array(Type.Object({ scope: Type.Union(scopes), id: Type.String() })));
  expect(asOwners(JSON.parse(asked.at(-1) ?? ''))?.[0]).toEqual({ scope: 'account', id: 'acct_1' });
  const latest = () => asPublication(JSON.parse(reported.at(-1) ?? '{}'));
  await expect.poll(() => latest()?.requests).toEqual([{ id: 'acct_1', found: [] }]);
  expect(latest()?.reports.map(({ owner }) => owner.id)).toEqual(['acct_1']);
  await reports.close();
});

const COUNTS = { points: 1, requests: 1, refused: 0 };

function reportOn(id: string, operations: number): object {
  return {
    owner: { scope: 'account', id },
    windows: { '10s': COUNTS, '1m': COUNTS, '10m': COUNTS },
    operations: Array.from({ length: operations }, (_, index) => ({ operation: `op${index}`, ...COUNTS })),
    accounts: { floor: 0, rows: [] },
    series: [],
    refusals: [],
  };
}

it('a report that cannot be read hides no other report, and is counted', () => {
  const ignored: unknown[] = [];
  const add = (...one: readonly unknown[]) => void ignored.push(one);
  const reports = [reportOn('a', 1), reportOn('too-many', 1_000), reportOn('of-0.3.0', 81), null];
  const requests = [
    { id: 'r'.repeat(200), found: [] },
    { id: 'r', found: [] },
  ];
  const read = asPublication({ takenAtMs: 1, name: 'weir-0', reports, requests }, { add });
  expect(read?.reports.map(({ owner }) => owner.id)).toEqual(['a', 'of-0.3.0']);
  expect(read?.requests).toEqual([{ id: 'r', found: [] }]);
  expect(ignored).toEqual([
    ['form', 2],
    ['form', 1],
  ]);
  expect(asPublication({ takenAtMs: 1, reports: 'none' })).toBeUndefined();
});

it('a question that cannot be read hides no other question', () => {
  expect(
    asAsked([
      { scope: 'galaxy', id: 'a' },
      { scope: 'account', id: 'a' },
    ]),
  ).toEqual([{ scope: 'account', id: 'a' }]);
  expect(asAsked(Array.from({ length: 17 }, () => ({ scope: 'account', id: 'a' })))).toBeUndefined();
  expect(asAsked({})).toBeUndefined();
});

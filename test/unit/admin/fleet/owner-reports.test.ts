import { pino } from 'pino';
import { expect, it } from 'vitest';
import { asAsked, asPublication } from '../../../../src/admin/fleet/owner-report.ts';
import { OwnerReports } from '../../../../src/admin/fleet/owner-reports.ts';
import { Refusals } from '../../../../src/admin/fleet/refusals.ts';
import { Ignored } from '../../../../src/facts/ignored.ts';
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

it('what a replica publishes can be read, whatever an operation is called and an operator asks for', async () => {
  const batch = new UsageBatch();
  const activity = new Activity(batch);
  const operation = { ...LIST, id: 'list\u0007\u202ethings' };
  batch.requestFinished(Object.assign(requestOf('acct_1'), { operation }), performance.now());
  const asked: string[] = [];
  const reported: string[] = [];
  const sources = {
    activity,
    refusals: new Refusals(Date.now),
    requests: { find: () => [] },
    nowMs: Date.now,
    ignored: new Ignored('summary', { sharedIgnored() {} }, pino({ enabled: false })),
  };
  const reports = new OwnerReports('replica', sources, {
    asked: boardInto(asked),
    reports: boardInto(reported),
  });
  await reports.sumOf({ scope: 'account', id: 'acct_1' }, false);
  for (const id of ['acct_1\u202e', '\ud83d', 'a'.repeat(300)])
    await reports.sumOf({ scope: 'account', id }, false);
  const latest = () => asPublication(JSON.parse(reported.at(-1) ?? '{}'));
  await expect.poll(() => latest()?.reports.map(({ owner }) => owner.id)).toEqual(['acct_1']);
  expect(latest()?.reports[0]?.operations).toMatchObject([{ operation: 'list\\u0007\\u202ethings' }]);
  expect(asAsked(JSON.parse(asked.at(-1) ?? '{}'))).toEqual([{ scope: 'account', id: 'acct_1' }]);
  await reports.close();
});

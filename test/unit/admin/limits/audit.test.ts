import { pino } from 'pino';
import { expect, it } from 'vitest';
import { LiveLimitActions } from '../../../../src/admin/limits/live.ts';
import { parseLimits } from '../../../../src/config/files/limits/parse.ts';
import { Buckets } from '../../../../src/stages/buckets/buckets.ts';
import { UnknownOutcome } from '../../../../src/store/shared-store.ts';

const OWNER = { section: 'accounts', id: 'acct_1' } as const;

it('each action writes one line with who, what and why, and what became of it', async () => {
  const lines: Record<string, unknown>[] = [];
  const log = pino({}, { write: (line) => lines.push(JSON.parse(line) as Record<string, unknown>) });
  const buckets = new Buckets('weir', parseLimits('{}', 'limits.yaml'));
  let failure: Error | undefined;
  const publisher = {
    nowMs: async () => Date.now(),
    publish: async () => {
      if (failure !== undefined) throw failure;
      return { notPublished: undefined };
    },
  };
  const actions = new LiveLimitActions({
    buckets,
    log,
    publisher,
    knownOwners: () => undefined,
    findCosts: () => [],
    operations: () => [],
  });
  const limits = [{ bucket: 'account-read', limit: 900 }] as const;

  await actions.set(OWNER, { limits, forMs: 60_000, why: 'launch', by: 'alice' });
  await actions.unset(OWNER, [], { why: 'over', by: 'bob' });
  failure = new Error('ECONNREFUSED');
  await expect(actions.set(OWNER, { limits, forMs: 60_000, why: 'again', by: 'eve' })).rejects.toThrow(
    'Nothing was changed: Redis does not take the command (ECONNREFUSED).',
  );
  failure = new UnknownOutcome('Connection is closed.');
  await expect(actions.set(OWNER, { limits, forMs: 60_000, why: 'late', by: 'eve' })).rejects.toThrow(
    'Redis gave no answer, so it may or may not have been changed: look at the list (Connection is closed.).',
  );
  expect(actions.list()).toEqual([]);

  const limit = { scope: 'account', id: 'acct_1', bucket: 'account-read', limit: 900 };
  expect(lines.filter(({ audit }) => audit)).toMatchObject([
    { audit: true, action: 'limit set', by: 'alice', why: 'launch', limits: [limit] },
    { audit: true, action: 'limit unset', by: 'bob', why: 'over', limits: [limit], outcome: 'changed' },
    {
      audit: true,
      action: 'limit set',
      by: 'eve',
      outcome: 'unchanged',
      problem: 'ECONNREFUSED',
      limits: [limit],
    },
    { audit: true, action: 'limit set', why: 'late', outcome: 'unknown', limits: [limit] },
  ]);
});

import { pino } from 'pino';
import { expect, it } from 'vitest';
import { LiveLimitActions } from '../../../../src/admin/limits/live.ts';
import { parseLimits } from '../../../../src/config/files/limits/parse.ts';
import { Buckets } from '../../../../src/gateway/buckets.ts';

const OWNER = { section: 'accounts', id: 'acct_1' } as const;

it('each action writes one line with who, what and why, and a failed one writes none', async () => {
  const lines: Record<string, unknown>[] = [];
  const log = pino({}, { write: (line) => lines.push(JSON.parse(line) as Record<string, unknown>) });
  const buckets = new Buckets('weir', parseLimits('{}', 'limits.yaml'));
  let isDown = false;
  const publisher = {
    nowMs: async () => Date.now(),
    publish: async () => {
      if (isDown) throw new Error('ECONNREFUSED');
    },
  };
  const actions = new LiveLimitActions({ buckets, log, publisher, findCosts: () => [] });
  const limits = [{ bucket: 'account-read', limit: 900 }] as const;

  await actions.set(OWNER, { limits, forMs: 60_000, why: 'launch', by: 'alice' });
  await actions.unset(OWNER, [], { why: 'over', by: 'bob' });
  isDown = true;
  await expect(actions.set(OWNER, { limits, forMs: 60_000, why: 'again', by: 'eve' })).rejects.toThrow(
    'Nothing was changed: Redis does not take the command (ECONNREFUSED).',
  );
  expect(actions.list()).toEqual([]);

  const limit = { scope: 'account', id: 'acct_1', bucket: 'account-read', limit: 900 };
  expect(lines.filter(({ audit }) => audit)).toMatchObject([
    { audit: true, action: 'limit set', by: 'alice', why: 'launch', limits: [limit] },
    { audit: true, action: 'limit unset', by: 'bob', why: 'over', limits: [limit] },
  ]);
});

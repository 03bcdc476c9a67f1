import { describe, expect, inject, test } from 'vitest';
import { createDatabase } from '../../../platform/test/fixtures/postgres.ts';
import { PLENTY } from '../../fixtures/configuration.ts';
import { linesOf } from '../../fixtures/log-lines.ts';
import { sharedRedisUrl, uniquePrefix } from '../../fixtures/redis-url.ts';
import { startSettling } from '../../fixtures/settling.ts';

const postgresUrl = inject('postgresUrl');

interface Line {
  readonly operation: string;
  readonly cost: number;
  readonly settled?: number;
}

describe.skipIf(postgresUrl === undefined)('an invoice', () => {
  test.each([['memory'], ['redis']])(
    'has the settled costs of the access log, by operation: %s',
    async (kind) => {
      const url = await createDatabase(postgresUrl ?? '');
      const gateway = await startSettling({
        limits: {
          ...PLENTY,
          limits: { 'account-month': { per: 'account', points: 1_000_000_000, period: 'month' } },
        },
        store: {
          kind,
          keyPrefix: uniquePrefix(),
          ...(kind === 'redis' && { url: sharedRedisUrl(), deadlineMs: 5_000 }),
        },
        journal: { url, flushMs: 100 },
      });
      let cost = 0;
      gateway.answer = (response, { url: path }) => {
        response.statusCode = path?.endsWith('/refund') ? 503 : 200;
        response.setHeader('Content-Type', 'application/json');
        response.end(JSON.stringify({ usage: { total_tokens: cost } }));
      };
      // Less than was reserved, more, nothing, a refund, and an operation that is not settled.
      for (const [method, path, final] of [
        ['POST', '/json', 812],
        ['POST', '/json', 9_000],
        ['POST', '/json', 0],
        ['POST', '/refund', 5],
        ['GET', '/plain', 1],
      ] as const) {
        cost = final;
        await gateway.send(method, path);
      }
      await expect.poll(() => linesOf(gateway, 'request')).toHaveLength(5);
      const costs: Record<string, number> = {};
      for (const { operation, cost: reserved, settled } of linesOf(gateway, 'request') as unknown as Line[])
        costs[operation] = (costs[operation] ?? 0) + (settled ?? reserved);
      const month = new Date().toISOString().slice(0, 7);
      await expect
        .poll(async () => {
          const invoice = await fetch(`${gateway.adminUrl}/usage/accounts/acct_1?period=${month}`);
          const { days } = (await invoice.json()) as { days: { operation: string; points: number }[] };
          return Object.fromEntries(days.map(({ operation, points }) => [operation, points]));
        })
        .toEqual(costs);
      expect(Object.values(costs).reduce((sum, one) => sum + one, 0)).toBe(812 + 9_000 + 3);
    },
  );
});

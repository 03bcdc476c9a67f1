import { expect, it, onTestFinished, vi } from 'vitest';
import type { ShownLimit } from '../../src/admin/facts/live-limit-api.ts';
import { check } from '../../src/commands/check/check.ts';
import { listLimits, setLimit } from '../../src/commands/limit/limit.ts';
import { mountConfigMap } from '../fixtures/config-map.ts';
import { writeConfiguration } from '../fixtures/configuration.ts';
import { startGateway } from '../fixtures/gateway.ts';
import { uniqueRedisStore } from '../fixtures/redis-url.ts';
import { runHere } from '../fixtures/run-here.ts';

/** Long enough for a machine that has much else to do. */
const WITHIN = { timeout: 60_000, interval: 20 };

const documentOf = (cost: number) => ({
  'openapi.yaml': {
    openapi: '3.1.0',
    info: { title: 'test', version: '1' },
    paths: {
      '/v3/reports': {
        get: { operationId: 'report', 'x-weir': { cost }, responses: { 200: { description: 'ok' } } },
      },
    },
  },
});

it('a cost that is deployed over a live limit is admitted once per window, logged as an error, and listed', async () => {
  const files = mountConfigMap(documentOf(5));
  onTestFinished(() => files.remove());
  const store = uniqueRedisStore();
  const gateway = await startGateway({
    store,
    settings: { log: { level: 'info' }, operations: { openapi: files.file('openapi.yaml') } },
  });
  onTestFinished(() => gateway.close());
  const admin = { url: gateway.adminUrl };
  const set = await runHere(() =>
    setLimit('acct_3', ['account-read=8'], { ...admin, why: 'slow', by: 'alice' }),
  );
  expect(set.failure).toBeUndefined();

  files.swap(documentOf(10));
  const raised = () => gateway.lines.filter((line) => line.includes('live-limit.raised'));
  await vi.waitFor(() => expect(raised()).toHaveLength(1), WITHIN);
  expect(JSON.parse(raised()[0] ?? '')).toMatchObject({
    level: 50,
    bucket: 'account-read',
    id: 'acct_3',
    limit: 8,
    inForce: 10,
    operation: 'report',
  });
  const send = async () => (await gateway.send('GET', '/v3/reports', { token: 'lonely' })).status;
  expect([await send(), await send()]).toEqual([200, 429]);

  const [listed] = (await (await fetch(`${gateway.adminUrl}/limits/live`)).json()) as ShownLimit[];
  expect(listed).toMatchObject({ limit: 8, inForce: 10 });
  const { stdout } = await runHere(() => listLimits(admin));
  expect(stdout).toContain('8 points until');
  expect(stdout).toContain(
    '10 is in force, because the live limit 8 for account-read of acct_3 is below the cost 10 of operation report.',
  );

  const upstream = { upstreamUrl: gateway.upstream.url, store };
  const config = await writeConfiguration({
    ...upstream,
    settings: { operations: { openapi: files.file('openapi.yaml') } },
  });
  const checked = await runHere(() => check({ config, connect: true }));
  expect(checked.stderr).toContain(
    'account-read of acct_3 is below the cost 10 of operation report: 10 will be in force',
  );

  // A live limit that is too low from the start is refused.
  const refused = await runHere(() =>
    setLimit('acct_3', ['account-read=9'], { ...admin, why: 'slow', by: 'alice' }),
  );
  expect(refused.failure).toContain('below the cost 10');
});

import { pino } from 'pino';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { readConfiguration } from '../../src/process/configuration.ts';
import { type RunningGateway, runGateway } from '../../src/process/run.ts';
import { writeConfiguration } from '../fixtures/configuration.ts';
import { DECISIONS, PROTOCOLS, sendPlain } from '../fixtures/decisions.ts';
import { type RedisServer, startRedisServer } from '../fixtures/redis-server.ts';
import { startUpstream, type TestUpstream } from '../fixtures/upstream.ts';

let redis: RedisServer;
let upstream: TestUpstream;
let gateway: RunningGateway;
const lines: string[] = [];
beforeAll(async () => {
  [redis, upstream] = await Promise.all([startRedisServer(), startUpstream()]);
  const file = await writeConfiguration({
    upstreamUrl: upstream.url,
    settings: { decisions: DECISIONS, log: { level: 'info', access: true } },
    store: { kind: 'redis', url: redis.url, deadlineMs: 5000 },
  });
  const log = pino({ level: 'info' }, { write: () => undefined });
  gateway = await runGateway(await readConfiguration(file, {}), {
    log,
    lines: { write: (line) => lines.push(line) },
  });
});
afterAll(async () => {
  await gateway.close();
  await redis.stop();
  await upstream.close();
});

const SERVICE = { Authorization: 'Bearer lonely' };

async function lineOf(requestId: string): Promise<Record<string, unknown>> {
  const find = () => lines.filter((line) => line.includes(requestId));
  await expect.poll(find).toHaveLength(1);
  return JSON.parse(find()[0] ?? '{}') as Record<string, unknown>;
}

it('the access log has a line for each, with the original request and the status for the client', async () => {
  const url = gateway.decisionsUrl ?? '';
  for (const [protocol, ask] of Object.entries(PROTOCOLS)) {
    const id = `asked-${protocol}`;
    await ask(url, 'GET', '/v3/things?secret=1', { ...SERVICE, 'X-Request-Id': id });
    expect(await lineOf(id)).toMatchObject({
      decision: protocol,
      method: 'GET',
      path: '/v3/things',
      operation: 'listThings',
      account: 'acct_3',
      outcome: 'admitted',
      status: 200,
    });
  }
  await sendPlain(gateway.url ?? '', 'GET', '/v3/things', { ...SERVICE, 'X-Request-Id': 'forwarded-1' });
  expect(await lineOf('forwarded-1')).not.toHaveProperty('decision');
  await PROTOCOLS['auth-request']?.(url, 'POST', '/v3//reports', { ...SERVICE, 'X-Request-Id': 'refused-1' });
  expect(await lineOf('refused-1')).toMatchObject({ method: 'POST', outcome: 'refused', status: 400 });
});

it('the metrics count decisions by protocol, among all requests', async () => {
  const metrics = await (await fetch(`${gateway.adminUrl}/metrics`)).text();
  expect(metrics).toContain('weir_decisions_total{protocol="ext-authz",outcome="admitted"} 1');
  expect(metrics).toContain('weir_decisions_total{protocol="forward-auth",outcome="admitted"} 1');
  expect(metrics).toContain('weir_decisions_total{protocol="auth-request",outcome="BadRequest"} 1');
  // An outcome that has not occurred yet is there, so that its first increase shows.
  for (const outcome of ['denied', 'uncounted', 'free', 'Unauthenticated', 'ServiceUnavailable'])
    expect(metrics).toContain(`weir_decisions_total{protocol="decide",outcome="${outcome}"} 0`);
  expect(metrics).toContain('weir_requests_total{kind="read",bucket="account-read",outcome="admitted"} 4');
});

it('a request that the store cannot count passes, and says so', async () => {
  await redis.stop();
  for (const [protocol, ask] of Object.entries(PROTOCOLS)) {
    const answer = await ask(gateway.decisionsUrl ?? '', 'GET', '/v3/things', SERVICE);
    expect([protocol, answer.status]).toEqual([protocol, 200]);
    expect(answer.headers).toMatchObject({
      'service-ratelimit-mode': 'degraded',
      'ratelimit-policy': expect.stringContaining('"account-read"'),
      'x-account-id': 'acct_3',
    });
    expect(answer.headers).not.toHaveProperty('ratelimit');
  }
});

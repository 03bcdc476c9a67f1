import { afterAll, beforeAll, expect, it } from 'vitest';
import { remainingOf, startGateway, type TestGateway } from '../fixtures/gateway.ts';
import { type RedisServer, startRedisServer } from '../fixtures/redis-server.ts';

let redis: RedisServer;
let gateway: TestGateway;

beforeAll(async () => {
  redis = await startRedisServer();
  gateway = await startGateway({
    store: { kind: 'redis', url: redis.url },
    limits: { windowSeconds: 1, defaults: { ...UNREACHED } },
  });
});
afterAll(async () => {
  await gateway.close();
  await redis.stop();
});

const UNREACHED = {
  'account-read': 1e6,
  'account-write': 1e6,
  'organization-read': 1e6,
  'organization-write': 1e6,
  'person-read': 1e6,
  'person-write': 1e6,
};

/** What the answer to one request says of how it was counted. */
async function modeOf(): Promise<'counted' | 'degraded' | 'wrong'> {
  const answer = await gateway.send('GET', '/v3/things');
  await answer.arrayBuffer();
  const isDegraded = answer.headers.get('Service-RateLimit-Mode') === 'degraded';
  const hasPolicy = answer.headers.get('RateLimit-Policy') !== null;
  const isCounted = remainingOf(answer) !== null;
  if (answer.status !== 200 || !hasPolicy || isDegraded === isCounted) return 'wrong';
  return isDegraded ? 'degraded' : 'counted';
}

async function untilAll(mode: 'counted' | 'degraded'): Promise<void> {
  await expect
    .poll(async () => Promise.all(Array.from({ length: 20 }, modeOf)), { timeout: 60_000, interval: 50 })
    .toEqual(Array(20).fill(mode));
}

it('every request is served while Redis fails, is down and recovers, and only the headers differ', async () => {
  await untilAll('counted');
  const modes = new Set<string>();
  let isOver = false;
  const load = Promise.all(
    Array.from({ length: 4 }, async () => {
      while (!isOver) modes.add(await modeOf());
    }),
  );
  await redis.kill();
  await untilAll('degraded');
  await redis.start();
  await untilAll('counted');
  isOver = true;
  await load;
  expect([...modes].sort()).toEqual(['counted', 'degraded']);
  expect(await gateway.metrics()).toMatch(/^weir_degraded_total\{reason="\w+"\} [1-9]/m);
});

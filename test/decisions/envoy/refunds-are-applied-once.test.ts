/** With Redis: hits that come back can be spent at once at this replica, and no refund is lost or applied twice while connections end. */
import { Redis } from 'ioredis';
import { expect, it, onTestFinished } from 'vitest';
import { codesOf, startRateLimitService } from '../../fixtures/rate-limit-service.ts';
import { startRedisServer } from '../../fixtures/redis-server.ts';

const RULES = `
domain: test
descriptors:
  - { key: tokens, rate_limit: { unit: hour, requests_per_unit: 100 } }
`;

const hits = (count: number, isNegative = false) => ({
  descriptors: [{ entries: { tokens: 'a' }, hits: count, isNegative }],
});

async function start() {
  const server = await startRedisServer();
  const admin = new Redis(server.port);
  const service = await startRateLimitService([RULES], {
    store: { kind: 'redis', url: server.url, deadlineMs: 5_000 },
  });
  onTestFinished(async () => {
    await service.close();
    admin.disconnect();
    await server.stop();
  });
  const left = async () => (await service.ask(hits(0))).statuses[0]?.limitRemaining;
  await expect.poll(left).toBe(100);
  return { service, admin, left };
}

it('hits that come back can be spent at once, although a refusal was remembered', async () => {
  const { service } = await start();
  await service.ask(hits(100));
  for (let count = 0; count < 2; count++) expect(codesOf(await service.ask(hits(10)))[0]).toBe('OVER_LIMIT');
  await service.ask(hits(10, true));
  expect((await service.ask(hits(10))).statuses[0]).toMatchObject({ code: 1, limitRemaining: 0 });
});

it('each refund is applied once while connections end', async () => {
  const { service, admin, left } = await start();
  await service.ask(hits(100));
  const refunds: Promise<unknown>[] = [];
  for (let count = 0; count < 30; count++) {
    refunds.push(service.ask(hits(2, true)));
    if (count % 5 === 0) await admin.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
  }
  await Promise.all(refunds);
  await expect.poll(left, { timeout: 20_000 }).toBe(60);
});

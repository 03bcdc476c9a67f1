import { once } from 'node:events';
import { request } from 'node:http';
import { Redis } from 'ioredis';
import { afterEach, expect, it, onTestFinished } from 'vitest';
import { PLENTY } from '../../fixtures/configuration.ts';
import { startGateway, type TestGateway } from '../../fixtures/gateway.ts';
import { connectRaw } from '../../fixtures/raw.ts';
import { startRedisServer } from '../../fixtures/redis-server.ts';
import { uniqueRedisStore } from '../../fixtures/redis-url.ts';
import { startUpstream } from '../../fixtures/upstream.ts';

let gateway: TestGateway;
afterEach(() => gateway.close());

const HEAD = 'Host: weir\r\nAuthorization: Bearer service\r\n';
/** As much of a long body as is read before its request is sent on. */
const BEGINNING = 'x'.repeat(65_536);

/** An upstream that never finishes an answer, and counts what is open. */
async function startHanging(beginAnswer: boolean) {
  const open = { count: 0, total: 0 };
  const upstream = await startUpstream((incoming, response) => {
    open.count++;
    open.total++;
    incoming.resume();
    if (beginAnswer) response.write('begun');
    response.once('close', () => open.count--);
  });
  return { upstream, open };
}

it.each([
  [400, 'before the answer began', false, `GET /v3/things HTTP/1.1\r\n${HEAD}\r\n`],
  [200, 'in the middle of the answer', true, `GET /v3/things HTTP/1.1\r\n${HEAD}\r\n`],
  [
    200,
    'in the middle of an upload',
    false,
    `POST /v3/things HTTP/1.1\r\n${HEAD}Content-Length: 100000\r\n\r\n${BEGINNING}`,
  ],
  [
    200,
    'in the middle of chunks',
    false,
    `POST /v3/things HTTP/1.1\r\n${HEAD}Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n`,
  ],
])('%i clients that leave %s leave nothing open upstream', async (clientCount, _, beginAnswer, bytes) => {
  const { upstream, open } = await startHanging(beginAnswer);
  gateway = await startGateway({
    upstream,
    limits: PLENTY,
    settings: { upstream: { url: upstream.url, connections: 60, maxWaiting: 10 } },
  });
  for (let round = 0; round < clientCount / 50; round++) {
    const clients = await Promise.all(Array.from({ length: 50 }, () => connectRaw(gateway.url)));
    for (const client of clients) client.on('error', () => {}).write(bytes);
    await expect.poll(() => open.count, { interval: 5 }).toBe(50);
    for (const client of clients) client.resetAndDestroy();
    await expect.poll(() => open.count, { interval: 5, timeout: 60_000 }).toBe(0);
  }
  expect(open.total).toBe(clientCount);
});

it('a client that leaves while it waits for a socket never reaches the upstream', async () => {
  const { upstream, open } = await startHanging(false);
  gateway = await startGateway({
    upstream,
    limits: PLENTY,
    settings: { upstream: { url: upstream.url, connections: 1 } },
  });
  const [first, second] = await Promise.all([connectRaw(gateway.url), connectRaw(gateway.url)]);
  first.write(`GET /v3/things/first HTTP/1.1\r\n${HEAD}\r\n`);
  await expect.poll(() => open.count, { interval: 5 }).toBe(1);
  second.write(`GET /v3/things/second HTTP/1.1\r\n${HEAD}\r\n`);
  await expect
    .poll(async () => (await gateway.metrics()).match(/weir_points_charged_total\{[^}]*\} [1-9]/)?.[0])
    .toBeUndefined();
  second.resetAndDestroy();
  await expect.poll(async () => /weir_requests_total\{[^}]*\} 1\n/.test(await gateway.metrics())).toBe(true);
  first.resetAndDestroy();
  const third = request(`${gateway.url}/v3/things/third`, { headers: { Authorization: 'Bearer service' } });
  third.on('error', () => {}).end();
  await expect.poll(() => upstream.seen.map(({ url }) => url), { interval: 5 }).toContain('/v3/things/third');
  third.destroy();
  expect(upstream.seen.map(({ url }) => url)).toEqual(['/v3/things/first', '/v3/things/third']);
});

it('requests above the queue limit of the upstream get an immediate 503, uncharged', async () => {
  const { upstream, open } = await startHanging(false);
  gateway = await startGateway({
    upstream,
    limits: PLENTY,
    settings: { upstream: { url: upstream.url, connections: 3, maxWaiting: 1 } },
  });
  const clients = await Promise.all(Array.from({ length: 3 }, () => connectRaw(gateway.url)));
  for (const client of clients) client.write(`GET /v3/things HTTP/1.1\r\n${HEAD}\r\n`);
  await expect.poll(() => open.count, { interval: 5 }).toBe(2);
  await expect
    .poll(async () => (await gateway.send('GET', '/v3/things', { headers: { Connection: 'close' } })).status)
    .toBe(503);
  const answer = await gateway.send('GET', '/v3/things');
  expect(await answer.json()).toMatchObject({
    code: 'ServiceUnavailable',
    detail: 'The service behind the gateway is too busy.',
  });
  expect(answer.headers.get('RateLimit')).toBeNull();
  for (const client of clients) {
    client.destroy();
    await once(client, 'close');
  }
});

const VALIDATED = `PUT /v3/strict/th_a HTTP/1.1\r\n${HEAD}Idempotency-Key: k\r\nContent-Type: application/json\r\n`;

it.each([
  ['without a body', `GET /v3/things HTTP/1.1\r\n${HEAD}\r\n`],
  ['whose body is to be validated', `${VALIDATED}Content-Length: 12\r\n\r\n{"name":"a"}`],
  [
    'whose body is to be validated, with Connection: close',
    `${VALIDATED}Connection: close\r\nContent-Length: 12\r\n\r\n{"name":"a"}`,
  ],
  [
    'whose body is to be validated, in chunks',
    `${VALIDATED}Transfer-Encoding: chunked\r\n\r\nc\r\n{"name":"a"}\r\n0\r\n\r\n`,
  ],
])(
  'a client that leaves before the store has decided is logged with what it was charged: a request %s',
  async (_, bytes) => {
    const redis = await startRedisServer();
    const admin = new Redis(redis.port);
    onTestFinished(async () => {
      admin.disconnect();
      await redis.stop();
    });
    const { upstream, open } = await startHanging(false);
    gateway = await startGateway({
      upstream,
      limits: PLENTY,
      settings: { store: uniqueRedisStore(`redis://127.0.0.1:${redis.port}`), log: { level: 'info' } },
    });
    const logged = () => gateway.lines.filter((line) => line.includes('"msg":"request"'));
    await expect.poll(() => gateway.metrics()).toMatch(/^weir_store_breaker_state\{.*\} 0$/m);
    await admin.client('PAUSE', 3_000, 'ALL');
    const client = await connectRaw(gateway.url);
    client.on('error', () => {}).write(bytes);
    await new Promise((resolve) => setTimeout(resolve, 200));
    client.resetAndDestroy();
    await expect.poll(() => logged().length, { timeout: 10_000 }).toBe(1);
    // On a busy machine, the store is given up.
    const outcome = expect.stringMatching(/^(admitted|uncounted)$/);
    expect(JSON.parse(logged()[0] ?? '')).toMatchObject({ outcome, cost: 1, status: 0 });
    expect(open.total).toBe(0);
    // Only once.
    await gateway.close();
    expect(logged()).toHaveLength(1);
  },
);

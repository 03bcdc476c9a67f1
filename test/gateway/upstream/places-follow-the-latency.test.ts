import { expect, it, onTestFinished } from 'vitest';
import { PLENTY } from '../../fixtures/configuration.ts';
import { startGateway } from '../../fixtures/gateway.ts';
import { startUpstream } from '../../fixtures/upstream.ts';

const SERVICE_MS = 10;

/** An upstream that works on one request at a time. */
async function startSerial() {
  const present = { count: 0 };
  let last = Promise.resolve();
  const upstream = await startUpstream((_, response) => {
    present.count++;
    response.once('close', () => present.count--);
    last = last.then(() => new Promise((resolve) => setTimeout(resolve, SERVICE_MS)));
    void last.then(() => response.end());
  });
  return { upstream, present };
}

it('with concurrency: adaptive, an upstream that makes requests wait gets fewer at once, and answers all', async () => {
  const { upstream, present } = await startSerial();
  const gateway = await startGateway({
    upstream,
    limits: PLENTY,
    settings: {
      upstream: { url: upstream.url, connections: 200, queueTimeoutMs: 600_000, concurrency: 'adaptive' },
    },
  });
  onTestFinished(() => gateway.close());
  const limit = async () =>
    Number(/weir_upstream_concurrency_limit\{[^}]*\} (\d+)/.exec(await gateway.metrics())?.[1]);
  expect(await limit()).toBe(32);
  const state = { isOver: false };
  const statuses = new Set<number>();
  const client = async () => {
    while (!state.isOver) statuses.add((await gateway.send('GET', '/v3/things')).status);
  };
  const clients = Array.from({ length: 60 }, client);
  await expect.poll(limit, { interval: 200, timeout: 100_000 }).toBeLessThan(10);
  await expect.poll(() => present.count, { interval: 1, timeout: 100_000 }).toBeLessThan(10);
  expect((await gateway.send('GET', '/v3/things', { token: 'lonely' })).status).toBe(200);
  state.isOver = true;
  await Promise.all(clients);
  expect([...statuses]).toEqual([200]);
}, 240_000);

it('with concurrency: adaptive, long responses keep no place from the other requests of their payer', async () => {
  const upstream = await startUpstream(({ url }, response) => {
    if (url === '/v3/things') response.end();
    else response.writeHead(200, { 'Content-Type': 'text/event-stream' }).write(': begun\n\n');
  });
  const gateway = await startGateway({
    upstream,
    limits: PLENTY,
    settings: {
      upstream: { url: upstream.url, connections: 200, concurrency: 'adaptive' },
      shutdown: { graceSeconds: 0 },
    },
  });
  onTestFinished(() => gateway.close());
  // More than the limit is at the beginning.
  const streams = await Promise.all(Array.from({ length: 60 }, () => gateway.send('GET', '/v3/things/42')));
  expect(streams.map(({ status }) => status)).toEqual(Array(60).fill(200));
  expect((await gateway.send('GET', '/v3/things')).status).toBe(200);
  await Promise.all(streams.map(({ body }) => body?.cancel()));
});

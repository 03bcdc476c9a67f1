import { setTimeout } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { sendTo } from '../fixtures/gateway.ts';
import { startUpstream, type TestUpstream } from '../fixtures/upstream.ts';
import { startWeir, type WeirProcess } from '../fixtures/weir-process.ts';

const MAX_DELAY_MS = 300;
/** If it counted as delay, the mean of a second would be above the limit for certain: there are at most ten looks at the clock in a second. */
const STOPPED_MS = 12 * MAX_DELAY_MS;
/** Longer than a second of looks. */
const WATCHED_MS = 1_500;

let upstream: TestUpstream;
let gateway: WeirProcess;

beforeAll(async () => {
  upstream = await startUpstream();
  gateway = await startWeir({
    upstreamUrl: upstream.url,
    settings: { listen: { host: '127.0.0.1', port: 0, maxEventLoopDelayMs: MAX_DELAY_MS } },
  });
});

afterAll(async () => {
  await gateway.close();
  await upstream.close();
});

test('a gateway that was stopped refuses no request as overload when it goes on', async () => {
  const statusOf = async () => (await sendTo(gateway.url, 'GET', '/v3/things')).status;
  await expect.poll(statusOf).toBe(200);
  gateway.process.kill('SIGSTOP');
  await setTimeout(STOPPED_MS);
  gateway.process.kill('SIGCONT');
  const statuses = new Set<number>();
  for (const untilMs = performance.now() + WATCHED_MS; performance.now() < untilMs; )
    statuses.add(await statusOf());
  expect([...statuses]).not.toContain(503);
});

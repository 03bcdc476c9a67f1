import { setTimeout } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { PLENTY } from '../../fixtures/configuration.ts';
import { sendTo } from '../../fixtures/gateway.ts';
import { connectRaw } from '../../fixtures/raw.ts';
import { startUpstream, type TestUpstream } from '../../fixtures/upstream.ts';
import { startWeir, type WeirProcess } from '../../fixtures/weir-process.ts';

const CLIENTS = 20;
const REQUEST = 'GET /v3/things HTTP/1.1\r\nHost: weir\r\nAuthorization: Bearer service\r\n';
/** Until the system has passed on the resets. */
const RESET_MS = 50;

let upstream: TestUpstream;
let gateway: WeirProcess;

beforeAll(async () => {
  upstream = await startUpstream();
  gateway = await startWeir({ upstreamUrl: upstream.url, limits: PLENTY });
});

afterAll(async () => {
  await gateway.close();
  await upstream.close();
});

// After a reset, the system no longer knows the client's address, but it still delivers what the client had sent.
it('a client that resets its connection before it is accepted is not served', async () => {
  gateway.process.kill('SIGSTOP');
  for (let index = 0; index < CLIENTS; index++) {
    const client = await connectRaw(gateway.url);
    await new Promise((resolve) => client.write(`${REQUEST}X-Request-Id: reset-${index}\r\n\r\n`, resolve));
    client.resetAndDestroy();
  }
  await setTimeout(RESET_MS);
  gateway.process.kill('SIGCONT');
  const headers = { 'X-Request-Id': 'kept' };
  expect((await sendTo(gateway.url, 'GET', '/v3/things', { headers })).status).toBe(200);
  await expect.poll(() => gateway.lines.filter((line) => line.includes('"kept"'))).toHaveLength(1);
  expect(gateway.lines.filter((line) => line.includes('"requestId":"reset-'))).toEqual([]);
  expect(upstream.seen).toHaveLength(1);
});

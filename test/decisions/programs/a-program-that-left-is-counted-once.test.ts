import { once } from 'node:events';
import { expect, it, onTestFinished } from 'vitest';
import { DECISIONS } from '../../fixtures/decisions.ts';
import { startGateway } from '../../fixtures/gateway.ts';
import { linesOf } from '../../fixtures/log-lines.ts';
import { connectRaw } from '../../fixtures/raw.ts';
import { sharedRedisUrl, uniqueRedisStore } from '../../fixtures/redis-url.ts';
import { startTcpProxy } from '../../fixtures/tcp-proxy.ts';

const QUESTION = { token: 'service', method: 'GET', path: '/v3/things' };

/** A gateway whose Redis answers when the test says so. */
async function start() {
  const line = await startTcpProxy(Number(new URL(sharedRedisUrl()).port));
  onTestFinished(() => line.stop());
  const store = { ...uniqueRedisStore(), url: `redis://127.0.0.1:${line.port}`, deadlineMs: 20_000 };
  const gateway = await startGateway({
    store,
    settings: { decisions: DECISIONS, log: { level: 'info' } },
  });
  onTestFinished(() => gateway.close());
  const post = (path: string, value: object) =>
    fetch(`${gateway.decisionsUrl}${path}`, { method: 'POST', body: JSON.stringify(value) });
  /** Asks, and leaves while Redis has not answered. */
  const askAndLeave = async (path: string, value: object) => {
    line.set({ kind: 'answers held' });
    const before = line.bytesFromClients;
    const body = JSON.stringify(value);
    const socket = await connectRaw(gateway.decisionsUrl);
    socket.write(`POST ${path} HTTP/1.1\r\nHost: weir\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
    await expect.poll(() => line.bytesFromClients).toBeGreaterThan(before);
    socket.destroy();
    await once(socket, 'close');
    // The gateway reads the end of the connection before this.
    expect((await fetch(`${gateway.decisionsUrl}/decide`)).status).toBe(405);
    line.set({ kind: 'open' });
  };
  /** The requests of the log without the one above. */
  const logged = () => linesOf(gateway, 'request').filter(({ status }) => status !== 405);
  return { gateway, post, askAndLeave, logged };
}

it('a question whose program has left is counted and logged once', async () => {
  const { gateway, post, askAndLeave, logged } = await start();
  expect((await post('/decide', QUESTION)).status).toBe(200);
  await askAndLeave('/decide', QUESTION);
  await expect.poll(() => logged().filter(({ outcome }) => outcome === 'admitted')).toHaveLength(2);
  await gateway.close();
  expect(logged()).toHaveLength(2);
});

it('a settlement whose program has left is counted and logged once', async () => {
  const { gateway, post, askAndLeave, logged } = await start();
  const { receipt } = (await (await post('/decide', { ...QUESTION, hold: '60s' })).json()) as {
    readonly receipt: string;
  };
  await askAndLeave('/settle', { receipt, cost: 0 });
  await expect.poll(() => linesOf(gateway, 'settlement')).toMatchObject([{ outcome: 'settled', settled: 0 }]);
  await gateway.close();
  expect(logged()).toMatchObject([{ outcome: 'admitted' }]);
});

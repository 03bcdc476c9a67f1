import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { join } from '../../../../src/gateway/upstream/tunnel.ts';

const LIMITS = { idleTimeoutMs: 600_000, sendTimeoutMs: 200 };

interface Connection {
  /** The end that the gateway has. */
  readonly own: Socket;
  /** The other end. It reads nothing. */
  readonly peer: Socket;
}

async function startConnection(): Promise<Connection> {
  const server = createServer({ allowHalfOpen: true, pauseOnConnect: true }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const own = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  const [[peer]] = (await Promise.all([once(server, 'connection'), once(own, 'connect')])) as [
    [Socket],
    unknown,
  ];
  server.close();
  for (const socket of [own, peer]) socket.on('error', () => {});
  onTestFinished(() => {
    own.destroy();
    peer.destroy();
  });
  return { own, peer };
}

/** Writes until the system takes no more. */
async function fill(socket: Socket): Promise<void> {
  const piece = Buffer.alloc(1_048_576);
  while (socket.write(piece) || (await isDrained(socket)));
}

/** A peer that reads nothing lets nothing drain. */
const PATIENCE_MS = 300;

async function isDrained(socket: Socket): Promise<boolean> {
  const late = AbortSignal.timeout(PATIENCE_MS);
  return once(socket, 'drain', { signal: late }).then(
    () => true,
    () => false,
  );
}

it('an upstream that sends but does not read is closed behind a client that has ended and closed', async () => {
  const [client, behind] = [await startConnection(), await startConnection()];
  await fill(behind.own);
  join(client.own, behind.own, LIMITS, () => {});
  client.peer.resume().end();
  await expect.poll(() => behind.own.writableEnded).toBe(true);
  const timer = setInterval(() => behind.peer.write('more'), 20);
  onTestFinished(() => clearInterval(timer));
  client.peer.destroy();
  await expect.poll(() => client.own.closed).toBe(true);
  expect(behind.own.writableFinished).toBe(false);
  await expect.poll(() => behind.own.closed, { timeout: 60_000 }).toBe(true);
}, 90_000);

it('a client that breaks with bytes of an ended upstream before it leaves no timer behind', async () => {
  const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
  const [client, behind] = [await startConnection(), await startConnection()];
  await fill(client.own);
  const before = timers();
  join(client.own, behind.own, { ...LIMITS, sendTimeoutMs: 600_000 }, () => {});
  behind.peer.end();
  await expect.poll(() => client.own.writableEnded).toBe(true);
  client.peer.resetAndDestroy();
  await expect.poll(() => behind.own.closed && client.own.closed).toBe(true);
  expect(client.own.writableFinished).toBe(false);
  expect(timers()).toBeLessThanOrEqual(before);
});

import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { Reconnection } from '../../src/store/redis/connection/reconnection.ts';
import { openConnection } from '../../src/store/redis/connection/redis-connection.ts';
import { silentObserver } from '../../src/store/store-observer.ts';

const PROTECTED =
  '-DENIED Redis is running in protected mode because no password is set for the default user.\r\n';

/** Ways in which a server, or what stands before it, turns a client away. */
const REFUSALS: Readonly<Record<string, (socket: Socket) => void>> = {
  'protected mode': (socket) => socket.end(PROTECTED),
  'too many clients': (socket) => socket.end('-ERR max number of clients reached\r\n'),
  'accepts and closes': (socket) => socket.end(),
  'accepts and resets': (socket) => socket.resetAndDestroy(),
  'answers HELLO and closes': (socket) =>
    socket.once('data', () => socket.write('+OK\r\n', () => socket.end())),
  'speaks HTTP': (socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'),
  'knows no RESP3 and closes': (socket) => {
    socket.once('data', () => socket.write('-NOPROTO unsupported protocol version\r\n', () => socket.end()));
  },
};

test.each(Object.entries(REFUSALS))('%s: the waits between attempts grow', async (_name, refuse) => {
  const server = createServer((socket) => refuse(socket.on('error', () => {}))).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `redis://:pw@127.0.0.1:${(server.address() as AddressInfo).port}`;
  let failures = 0;
  const observer = { ...silentObserver, connectionFailed: () => void failures++ };
  const link = openConnection({ kind: 'redis', url, deadlineMs: 25 }, observer, { ready() {}, lost() {} });
  onTestFinished(() => {
    link.close();
    server.close();
  });
  const delaysMs: number[] = [];
  await new Promise<void>((resolve) => {
    link.client.on('reconnecting', (delayMs: number) => {
      if (delaysMs.push(delayMs) === 6) resolve();
    });
  });
  // Doubled to the longest, and scattered by a quarter both ways: from 25 ms at most to 187 ms at least.
  expect(delaysMs[5], delaysMs.join()).toBeGreaterThan(7 * (delaysMs[0] ?? 0));
  expect(failures).toBeGreaterThanOrEqual(5);
});

test('waits double, stay below a third of a second and are randomised', () => {
  const firsts = Array.from({ length: 50 }, () => new Reconnection().nextDelayMs());
  expect(new Set(firsts).size).toBeGreaterThan(1);
  const { nextDelayMs } = new Reconnection();
  const delaysMs = Array.from({ length: 100 }, nextDelayMs);
  expect(Math.max(...delaysMs)).toBeLessThan(1_000 / 3);
  expect(Math.min(...delaysMs.slice(10))).toBeGreaterThan(180);
});

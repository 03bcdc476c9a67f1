import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { Redis } from 'ioredis';
import { expect, onTestFinished, test } from 'vitest';
import { openStore } from '../../src/store/open-store.ts';
import { trialBucket } from '../../src/store/store.ts';
import { startRedisServer } from '../fixtures/redis-server.ts';
import { uniquePrefix } from '../fixtures/redis-url.ts';

/** As a name that leads to one server or the other: connections stay where they are. */
async function startName(port: number) {
  const name = { port };
  const server = createServer((client) => {
    const target = connect(name.port, '127.0.0.1');
    for (const socket of [client, target]) socket.on('error', () => {});
    client.pipe(target).pipe(client);
  }).listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  return { url: `redis://127.0.0.1:${(server.address() as AddressInfo).port}`, name };
}

async function startServer() {
  const server = await startRedisServer();
  const client = new Redis(server.url);
  onTestFinished(async () => {
    client.disconnect();
    await server.stop();
  });
  return { server, client };
}

test('a store counts at the new primary when the old one has become a replica and still runs', async () => {
  const [old, primary] = [await startServer(), await startServer()];
  const { url, name } = await startName(old.server.port);
  const store = openStore({ kind: 'redis', url, deadlineMs: 1_000 });
  onTestFinished(() => store.close());
  const charge = { buckets: [trialBucket(`${uniquePrefix()}k`)], cost: 1 };
  const outcome = async () => (await store.charge(charge)).outcome;
  await expect.poll(outcome).toBe('admitted');
  await old.client.replicaof('127.0.0.1', primary.server.port);
  expect(await outcome()).toBe('uncounted');
  name.port = primary.server.port;
  await expect.poll(outcome).toBe('admitted');
});

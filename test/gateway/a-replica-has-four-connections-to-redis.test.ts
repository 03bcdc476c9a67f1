/** What a replica reads and writes in Redis, by connection: nothing that is slow delays a charge or the count of replicas. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { createInterface } from 'node:readline';
import { Redis } from 'ioredis';
import { expect, it, onTestFinished } from 'vitest';
import { startGateway } from '../fixtures/gateway.ts';
import { startRedisServer } from '../fixtures/redis-server.ts';
import { uniquePrefix } from '../fixtures/redis-url.ts';

const SOON = { timeout: 20_000, interval: 20 };

/** A gateway that uses all that a store offers, alone on its Redis. */
async function start() {
  const redis = await startRedisServer();
  onTestFinished(() => redis.stop());
  const client = new Redis(redis.url);
  onTestFinished(() => client.disconnect());
  const keyPrefix = uniquePrefix();
  const gateway = await startGateway({
    store: { kind: 'redis', url: redis.url, keyPrefix, deadlineMs: 5_000, onStoreFailure: 'share' },
    settings: { notifications: { log: true } },
  });
  onTestFinished(() => gateway.close());
  const send = (method: string, path: string, body: object) =>
    fetch(gateway.adminUrl + path, {
      method,
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ why: 'launch', by: 'alice', ...body }),
    });
  /** Changes a fact of each kind, lists them, and asks about an owner. */
  const use = async () => {
    await gateway.send('GET', '/v3/things');
    const changes = await Promise.all([
      send('PUT', '/limits/live/accounts/acct_1', { 'account-read': 5_000 }),
      send('PUT', '/blocks/addresses/192.0.2.1', {}),
      send('POST', '/revocations', { token: 'a-token' }),
    ]);
    expect(changes.map(({ status }) => status)).toEqual([200, 200, 201]);
    for (const path of ['/revocations', '/limits/live', '/usage/top', '/usage/accounts/acct_1'])
      expect((await fetch(gateway.adminUrl + path)).status).toBe(200);
  };
  return { redis, client, keyPrefix, use };
}

async function connectionsOf(client: Redis): Promise<number> {
  const clients = String(await client.client('LIST')).split('\n');
  return clients.filter((line) => line.includes(' name=weir ')).length;
}

async function madeIn(client: Redis): Promise<string | undefined> {
  return /^total_connections_received:(\d+)/m.exec(await client.info('stats'))?.[1];
}

it('a replica has four connections to Redis, and opens no other for a change', async () => {
  const { client, use } = await start();
  await expect.poll(() => connectionsOf(client), SOON).toBe(4);
  const before = await madeIn(client);
  await use();
  expect([await connectionsOf(client), await madeIn(client)]).toEqual([4, before]);
});

it('charges, short commands and boards do not wait for one another', async () => {
  const { redis, client, keyPrefix, use } = await start();
  await expect.poll(() => connectionsOf(client), SOON).toBe(4);
  const monitor = connect(Number(new URL(redis.url).port), '127.0.0.1');
  onTestFinished(() => void monitor.destroy());
  const sources = new Map<string, Set<string>>();
  createInterface(monitor).on('line', (line) => {
    const { source, args } = readCommand(line);
    const kind = kindOf(args, keyPrefix);
    if (kind !== undefined && source !== 'lua')
      sources.set(kind, (sources.get(kind) ?? new Set()).add(source));
  });
  monitor.write('MONITOR\r\n');
  await once(monitor, 'data');
  await use();
  await expect.poll(() => [...sources.keys()].sort(), SOON).toEqual(['board', 'charge', 'short']);
  const all = [...sources.values()].flatMap((of) => [...of]);
  expect([all.length, new Set(all).size]).toEqual([3, 3]);
});

/** A line of MONITOR, such as `+1700000000.000000 [0 127.0.0.1:40014] "get" "a-key"`. */
function readCommand(line: string): { readonly source: string; readonly args: readonly string[] } {
  const [, source = '', text = ''] = /^\+\S+ \[\d+ ([^\]]+)\] (.*)$/.exec(line) ?? [];
  return { source, args: [...text.matchAll(/"((?:[^"\\]|\\.)*)"/g)].map(([, arg = '']) => arg) };
}

/** What a command is for; undefined for commands without a key. */
function kindOf(args: readonly string[], keyPrefix: string): string | undefined {
  const key = args.slice(1).find((arg) => arg.startsWith(`${keyPrefix}:`));
  if (key === undefined || args[0]?.toLowerCase() === 'subscribe') return undefined;
  if (/:1:(\{(top|asked|owners|present|refused)\}|refusals:)/.test(key)) return 'board';
  return /:1:(replicas|\w+:record)$/.test(key) ? 'short' : 'charge';
}

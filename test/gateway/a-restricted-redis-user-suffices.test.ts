import { readFile } from 'node:fs/promises';
import { Redis } from 'ioredis';
import { expect, it, onTestFinished } from 'vitest';
import type { ShownChange } from '../../src/admin/history/change.ts';
import { PLENTY } from '../fixtures/configuration.ts';
import { startGateway, type TestGateway } from '../fixtures/gateway.ts';
import { leftOf, startHolding } from '../fixtures/held-decisions.ts';
import { startRedisServer } from '../fixtures/redis-server.ts';
import { startSettling } from '../fixtures/settling.ts';

const SOON = { timeout: 30_000, interval: 100 };

/** What docs/operating/redis.md has a reader type. */
async function documentedUser(): Promise<readonly string[]> {
  const page = await readFile(new URL('../../docs/operating/redis.md', import.meta.url), 'utf8');
  const [, words = ''] = /^ACL SETUSER ([^`]+)```$/m.exec(page) ?? [];
  return words.trim().split(/\s+/);
}

/** A Redis with this user, and a client that may do everything. */
async function startRestricted(): Promise<{ store: Record<string, unknown>; client: Redis }> {
  // As Redis 6.2 is without a setting: new users may use all channels.
  const server = await startRedisServer({ args: ['--acl-pubsub-default', 'allchannels'] });
  const client = new Redis(server.url);
  onTestFinished(async () => {
    client.disconnect();
    await server.stop();
  });
  await client.call('ACL', 'SETUSER', ...(await documentedUser()));
  const user = { username: 'weir', password: 'PASSWORD' };
  return {
    client,
    store: { kind: 'redis', url: server.url, keyPrefix: 'weir', ...user, deadlineMs: 5_000 },
  };
}

/** Redis logs each command that it denied. Only the reading of its settings is optional. */
async function deniedTo(client: Redis): Promise<readonly unknown[]> {
  const log = (await client.call('ACL', 'LOG')) as readonly (readonly unknown[])[];
  return log.map((entry) => entry[entry.indexOf('object') + 1]).filter((name) => name !== 'config|get');
}

async function start(store: Record<string, unknown>): Promise<TestGateway> {
  const gateway = await startGateway({ store, settings: { log: { level: 'info' } } });
  onTestFinished(() => gateway.close());
  return gateway;
}

const put = (url: string, body: object) =>
  fetch(url, {
    method: 'PUT',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ why: 'leak', by: 'alice', for: '1h', ...body }),
  });

it('the documented rights of the Redis user suffice for counts, live limits, blocks and changes', async () => {
  const { client, store } = await startRestricted();
  const [first, second] = [await start(store), await start(store)];
  await expect
    .poll(async () => (await first.send('GET', '/v3/things')).headers.has('RateLimit'), SOON)
    .toBe(true);
  expect((await put(`${first.adminUrl}/blocks/accounts/acct_2`, {})).status).toBe(200);
  expect((await put(`${first.adminUrl}/limits/live/accounts/acct_1`, { 'account-read': 19 })).status).toBe(
    200,
  );
  const kinds = async () => {
    const answer = await (await fetch(`${second.adminUrl}/changes`)).json();
    // A busy machine may lose the store for a moment.
    const made = (answer as ShownChange[]).filter(({ kind }) => !kind.startsWith('store.'));
    return made.map(({ kind }) => kind).sort();
  };
  await expect
    .poll(kinds, SOON)
    .toEqual(['block.made', 'limits.changed', 'replica.joined', 'replica.joined']);
  await first.close();
  await expect.poll(kinds, SOON).toContain('replica.left');
  expect(await deniedTo(client)).toEqual([]);
});

it('they suffice for settlements, held decisions, receipts and requests in flight', async () => {
  const { client, store } = await startRestricted();
  const settling = await startSettling({
    store,
    limits: {
      ...PLENTY,
      limits: {
        tokens: { per: 'account', points: 100_000, window: '1h' },
        'in-flight': { per: 'account', concurrent: 1 },
      },
    },
  });
  settling.answer = (response) => response.end(Buffer.alloc(2_000));
  const left = async () =>
    /"tokens";r=(\d+)/.exec((await settling.send('GET', '/plain')).headers.get('RateLimit') ?? '')?.[1];
  await expect.poll(left, SOON).toBeDefined();
  const before = Number(await left());
  await (await settling.send('POST', '/bytes')).text();
  settling.answer = (response) => response.writeHead(404).end();
  await (await settling.send('POST', '/refund')).text();
  // The second one has taken its own three points.
  await expect.poll(async () => before - Number(await left()), SOON).toBeLessThan(100);

  const { hold, settle, decide } = await startHolding(store);
  const held = { account: 'acct_3', hold: '60s' };
  await expect.poll(async () => (await decide({ ...held, cost: 1 })).receipt, SOON).toBeTypeOf('string');
  const receipt = await hold('acct_3', 4_000);
  expect(await decide(held)).toMatchObject({ status: 429 });
  expect(leftOf(await settle(receipt, 812), 'tokens')).toBe(9_187);
  expect(await settle(receipt, 812)).toMatchObject({ settled: false, reason: 'already' });
  expect(leftOf(await settle(await hold('acct_3', 100), 500), 'tokens')).toBe(8_687);
  expect(await deniedTo(client)).toEqual([]);
});

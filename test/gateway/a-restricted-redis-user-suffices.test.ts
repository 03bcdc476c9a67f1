import { readFile } from 'node:fs/promises';
import { Redis } from 'ioredis';
import { expect, it, onTestFinished } from 'vitest';
import type { ShownChange } from '../../src/admin/history/change.ts';
import { startGateway, type TestGateway } from '../fixtures/gateway.ts';
import { startRedisServer } from '../fixtures/redis-server.ts';

const SOON = { timeout: 30_000, interval: 100 };

/** What docs/operating/redis.md has a reader type. */
async function documentedUser(): Promise<readonly string[]> {
  const page = await readFile(new URL('../../docs/operating/redis.md', import.meta.url), 'utf8');
  const [, words = ''] = /^ACL SETUSER ([^`]+)```$/m.exec(page) ?? [];
  return words.trim().split(/\s+/);
}

/** A gateway whose Redis gives it the documented rights alone. */
async function start(url: string): Promise<TestGateway> {
  const store = {
    kind: 'redis',
    url,
    keyPrefix: 'weir',
    username: 'weir',
    password: 'PASSWORD',
    deadlineMs: 5_000,
  };
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
  const server = await startRedisServer();
  onTestFinished(() => server.stop());
  const client = new Redis(server.url);
  await client.call('ACL', 'SETUSER', ...(await documentedUser()));
  const [first, second] = [await start(server.url), await start(server.url)];
  await expect
    .poll(async () => (await first.send('GET', '/v3/things')).headers.has('RateLimit'), SOON)
    .toBe(true);
  expect((await put(`${first.adminUrl}/blocks/accounts/acct_2`, {})).status).toBe(200);
  expect((await put(`${first.adminUrl}/limits/live/accounts/acct_1`, { 'account-read': 19 })).status).toBe(
    200,
  );
  const kinds = async () => {
    const answer = await (await fetch(`${second.adminUrl}/changes`)).json();
    return (answer as ShownChange[]).map(({ kind }) => kind).sort();
  };
  await expect
    .poll(kinds, SOON)
    .toEqual(['block.made', 'limits.changed', 'replica.joined', 'replica.joined']);
  await first.close();
  await expect.poll(kinds, SOON).toContain('replica.left');
  // Redis logs each command that it denied. Only the reading of its settings is optional.
  const denied = (await client.call('ACL', 'LOG')) as readonly (readonly unknown[])[];
  client.disconnect();
  expect(
    denied.map((entry) => entry[entry.indexOf('object') + 1]).filter((name) => name !== 'config|get'),
  ).toEqual([]);
});

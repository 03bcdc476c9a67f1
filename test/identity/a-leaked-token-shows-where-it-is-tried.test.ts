import { hash } from 'node:crypto';
import { Redis } from 'ioredis';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { ShownRevocation } from '../../src/admin/facts/revocation-api.ts';
import { PLENTY, writeConfiguration } from '../fixtures/configuration.ts';
import { startGateway, type TestGateway } from '../fixtures/gateway.ts';
import { jwtSettings, startIssuer } from '../fixtures/issuer.ts';
import { startRedisServer } from '../fixtures/redis-server.ts';
import { sharedRedisUrl, uniquePrefix } from '../fixtures/redis-url.ts';
import { revokeHere } from '../fixtures/revoke.ts';

const SOON = { timeout: 40_000, interval: 50 };
const ADDRESS = '203.0.113.9';
const OTHER_ADDRESS = '198.51.100.7';

let keyPrefix: string;
const closing: (() => Promise<unknown>)[] = [];
beforeEach(() => {
  keyPrefix = uniquePrefix();
});
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

const storeAt = (url = sharedRedisUrl()) => ({ kind: 'redis', url, keyPrefix, deadlineMs: 5_000 });

async function start(settings: object = {}, url?: string): Promise<TestGateway> {
  const gateway = await startGateway({
    store: storeAt(url),
    limits: PLENTY,
    settings: {
      log: { level: 'info' },
      listen: { host: '127.0.0.1', port: 0, trustedProxies: ['127.0.0.1/32'] },
      ...settings,
    },
  });
  closing.push(() => gateway.close());
  return gateway;
}

/** Sends a token from an address. */
const attempt = (gateway: TestGateway, token: string, from = ADDRESS, requestId = 'attempt') =>
  gateway.send('GET', '/v3/things', {
    token,
    headers: { 'X-Forwarded-For': from, 'X-Request-Id': requestId },
  });

async function revoke(target: { token: string } | { principal: string }, url?: string): Promise<void> {
  const config = await writeConfiguration({ upstreamUrl: 'http://127.0.0.1:1', store: storeAt(url) });
  expect((await revokeHere({ config, ...target })).failure).toBeUndefined();
}

async function list({ adminUrl }: TestGateway): Promise<readonly ShownRevocation[]> {
  return (await (await fetch(`${adminUrl}/revocations`)).json()) as ShownRevocation[];
}

const lastFrom = async (gateway: TestGateway) =>
  (await list(gateway)).map(({ lastTried }) => lastTried?.from);

async function lineOf({ lines }: TestGateway, requestId: string): Promise<Record<string, unknown>> {
  const find = () => lines.find((line) => line.includes(requestId) && line.includes('"msg":"request"'));
  await expect.poll(find, SOON).toBeDefined();
  return JSON.parse(find() ?? '{}') as Record<string, unknown>;
}

const digest = (token: string) => `sha256:${hash('sha256', token).slice(0, 16)}`;

it('every replica and the command show who tried it last, wherever that was, in one record', async () => {
  const [one, other] = [await start(), await start()];
  await revoke({ token: 'lonely' });
  for (const gateway of [one, other])
    await expect.poll(async () => (await attempt(gateway, 'lonely')).status, SOON).toBe(401);
  await expect.poll(() => lastFrom(one), SOON).toEqual([ADDRESS]);
  await attempt(other, 'lonely', OTHER_ADDRESS);
  for (const gateway of [one, other])
    await expect.poll(() => lastFrom(gateway), SOON).toEqual([OTHER_ADDRESS]);

  const config = await writeConfiguration({ upstreamUrl: 'http://127.0.0.1:1', store: storeAt() });
  // The other replica writes every two seconds.
  await expect
    .poll(async () => (await revokeHere({ config, list: true })).stdout, SOON)
    .toMatch(/^token {6}sha256:[0-9a-f]{64} .*, last tried \d{4}-.*Z from 198\.51\.100\.7\n$/);
  const client = new Redis(sharedRedisUrl());
  const record = await client.zrange(`${keyPrefix}:1:tries:record`, '0', '-1');
  client.disconnect();
  expect(record).toHaveLength(1);
  expect(record.join()).not.toContain('lonely');
});

it('a replica that stops has written the last try', async () => {
  const [stopping, other] = [await start(), await start()];
  await revoke({ token: 'lonely' });
  await expect.poll(async () => (await attempt(stopping, 'lonely')).status, SOON).toBe(401);
  await expect.poll(() => lastFrom(other), SOON).toEqual([ADDRESS]);
  // In the time between two writes.
  await attempt(stopping, 'lonely', OTHER_ADDRESS);
  await stopping.close();
  await expect.poll(() => lastFrom(other), { timeout: 5_000 }).toEqual([OTHER_ADDRESS]);
});

it('the log marks its requests, and the client gets what an unknown token gets', async () => {
  const gateway = await start();
  await revoke({ token: 'lonely' });
  await expect.poll(async () => (await attempt(gateway, 'lonely')).status, SOON).toBe(401);
  const bodyOf = async (token: string, requestId: string) => {
    const response = await attempt(gateway, token, ADDRESS, requestId);
    return [...response.headers.keys(), (await response.text()).replace(requestId, '')];
  };
  expect(await bodyOf('lonely', 'revoked-1')).toEqual(await bodyOf('made-up', 'unknown-1'));
  expect(await lineOf(gateway, 'revoked-1')).toMatchObject({
    status: 401,
    clientAddress: ADDRESS,
    token: digest('lonely'),
    revoked: 'token',
  });
  const unknown = await lineOf(gateway, 'unknown-1');
  expect(unknown).not.toHaveProperty('token');
  expect(unknown).not.toHaveProperty('revoked');
});

it('a token that was revoked and then taken out of the file is still recognised', async () => {
  const gateway = await start();
  await revoke({ token: 'no-longer-in-the-file' });
  await expect.poll(async () => (await list(gateway)).length, SOON).toBe(1);
  expect(await lastFrom(gateway)).toEqual([undefined]);
  expect((await attempt(gateway, 'no-longer-in-the-file', ADDRESS, 'gone-1')).status).toBe(401);
  expect(await lineOf(gateway, 'gone-1')).toMatchObject({ revoked: 'token' });
  await expect.poll(() => lastFrom(gateway), SOON).toEqual([ADDRESS]);
});

it('a token of a revoked principal is shown with the principal, cached or not', async () => {
  const issuer = await startIssuer();
  closing.push(() => issuer.close());
  const [one, other] = [await start(jwtSettings(issuer)), await start(jwtSettings(issuer))];
  const [cached, fresh] = [await issuer.sign(), await issuer.sign()];
  expect((await attempt(one, cached)).status).toBe(200);
  await revoke({ principal: 'person_1' });
  for (const gateway of [one, other])
    await expect.poll(async () => (await attempt(gateway, cached)).status, SOON).toBe(401);
  for (const [gateway, token, requestId] of [
    [one, cached, 'cached-1'],
    [other, fresh, 'fresh-1'],
    [other, fresh, 'fresh-2'],
  ] as const) {
    expect((await attempt(gateway, token, ADDRESS, requestId)).status).toBe(401);
    const line = await lineOf(gateway, requestId);
    expect(line).toMatchObject({ principal: 'person_1', token: digest(token), revoked: 'principal' });
  }
  await expect.poll(() => lastFrom(one), SOON).toEqual([ADDRESS]);
});

it('without Redis a replica shows what it saw itself, and Redis gets it later', async () => {
  const redis = await startRedisServer();
  closing.push(() => redis.stop());
  const [one, other] = [await start({}, redis.url), await start({}, redis.url)];
  await revoke({ token: 'lonely' }, redis.url);
  for (const gateway of [one, other])
    await expect.poll(async () => (await list(gateway)).length, SOON).toBe(1);
  await redis.kill();
  expect((await attempt(one, 'lonely')).status).toBe(401);
  expect([await lastFrom(one), await lastFrom(other)]).toEqual([[ADDRESS], [undefined]]);
  await redis.start();
  await expect.poll(() => lastFrom(other), SOON).toEqual([ADDRESS]);
});

import { createHash } from 'node:crypto';
import { Redis } from 'ioredis';
import { generateKeyPair } from 'jose';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { RevokeOptions } from '../../src/commands/revoke.ts';
import { twinOf } from '../../src/identity/jwt/signature-malleability.ts';
import { PLENTY, writeConfiguration } from '../fixtures/configuration.ts';
import { startGateway, type TestGateway } from '../fixtures/gateway.ts';
import {
  introspectionSettings,
  jwtSettings,
  signWith,
  startIssuer,
  type TestIssuer,
} from '../fixtures/issuer.ts';
import { type RedisServer, startRedisServer } from '../fixtures/redis-server.ts';
import { sharedRedisUrl, uniquePrefix } from '../fixtures/redis-url.ts';
import { revokeHere } from '../fixtures/revoke.ts';
import { runWeirHere } from '../fixtures/run-here.ts';

let issuer: TestIssuer;
let gateways: TestGateway[] = [];
let redis: RedisServer | undefined;
let keyPrefix: string;

beforeEach(async () => {
  issuer = await startIssuer();
  keyPrefix = uniquePrefix();
});
afterEach(async () => {
  await Promise.all(gateways.map((gateway) => gateway.close()));
  await issuer.close();
  await redis?.stop();
  gateways = [];
  redis = undefined;
});

const sha256 = (token: string) => createHash('sha256').update(token).digest('hex');
const store = (url = sharedRedisUrl()) => ({ kind: 'redis', url, keyPrefix, deadlineMs: 5000 });

async function start(settings: object, url?: string): Promise<TestGateway> {
  const gateway = await startGateway({ settings: { ...settings }, store: store(url), limits: PLENTY });
  gateways.push(gateway);
  return gateway;
}

async function statuses(token: string): Promise<readonly number[]> {
  const answers = await Promise.all(gateways.map((gateway) => gateway.send('GET', '/v3/things', { token })));
  return answers.map(({ status }) => status);
}

/** News take their time on a busy machine. */
async function untilStatuses(token: string, expected: readonly number[]): Promise<void> {
  await vi.waitFor(async () => expect(await statuses(token)).toEqual(expected), { timeout: 60_000 });
}

async function revoke(options: Omit<RevokeOptions, 'config'>, url?: string): Promise<void> {
  const config = await writeConfiguration({ upstreamUrl: 'http://127.0.0.1:1', store: store(url) });
  expect((await revokeHere({ ...options, config })).failure).toBeUndefined();
}

describe('at every replica', () => {
  it('a token, by its digest, while others of the same principal go on', async () => {
    await Promise.all([start(jwtSettings(issuer)), start(jwtSettings(issuer))]);
    const [stolen, other] = [await issuer.sign(), await issuer.sign()];
    expect(await statuses(stolen)).toEqual([200, 200]);
    const file = await writeConfiguration({ upstreamUrl: 'http://127.0.0.1:1', store: store() });
    const { code, stdout, stderr } = await runWeirHere(['revoke', '--config', file, '--token', stolen]);
    expect(stderr).not.toContain(stolen);
    expect(stdout).toContain('2 gateways have received it');
    expect(stdout).not.toContain(stolen);
    expect(code).toBe(0);
    await untilStatuses(stolen, [401, 401]);
    expect(await statuses(other)).toEqual([200, 200]);
  });

  it('what a principal was given until now, and not what it is given later', async () => {
    await Promise.all([start(jwtSettings(issuer)), start(jwtSettings(issuer))]);
    const before = await issuer.sign();
    const ofAnother = await issuer.sign({ sub: 'person_2', account: 'acct_2' });
    expect(await statuses(before)).toEqual([200, 200]);
    await revoke({ principal: 'person_1' });
    await untilStatuses(before, [401, 401]);
    expect(await statuses(await issuer.sign({ iat: Math.floor(Date.now() / 1000) + 2 }))).toEqual([200, 200]);
    expect(await statuses(ofAnother)).toEqual([200, 200]);
  });

  it('an API key of the identities file', async () => {
    await Promise.all([start({}), start({})]);
    expect(await statuses('person')).toEqual([200, 200]);
    await revoke({ token: `sha256:${sha256('person')}` });
    await vi.waitFor(async () => expect(await statuses('person')).toEqual([401, 401]));
    expect(await statuses('service')).toEqual([200, 200]);
  });

  it('a cached introspection is removed, and the provider is called again', async () => {
    issuer.tokens.set('opaque', { active: true, sub: 'svc_1', account: 'acct_1' });
    await Promise.all([start(introspectionSettings(issuer)), start(introspectionSettings(issuer))]);
    expect(await statuses('opaque')).toEqual([200, 200]);
    issuer.tokens.delete('opaque');
    expect(await statuses('opaque')).toEqual([200, 200]);
    await revoke({ principal: 'svc_1' });
    await vi.waitFor(async () => expect(await statuses('opaque')).toEqual([401, 401]));
  });

  it('a cached introspection of a signed token, in its other form as well', async () => {
    const { privateKey } = await generateKeyPair('ES256');
    const token = await signWith(privateKey, 'key', {}, { alg: 'ES256' });
    const twin = twinOf(token) ?? '';
    const padded = `${token}==`;
    for (const one of [token, twin, padded])
      issuer.tokens.set(one, { active: true, sub: 'svc_1', account: 'acct_1' });
    await Promise.all([start(introspectionSettings(issuer)), start(introspectionSettings(issuer))]);
    expect(await statuses(token)).toEqual([200, 200]);
    expect(await statuses(twin)).toEqual([200, 200]);
    expect(await statuses(padded)).toEqual([401, 401]);
    await revoke({ token });
    await untilStatuses(token, [401, 401]);
    expect(await statuses(twin)).toEqual([401, 401]);
  });

  it('a plain message on the channel does the same', async () => {
    await start(jwtSettings(issuer));
    const token = await issuer.sign();
    expect(await statuses(token)).toEqual([200]);
    const client = new Redis(sharedRedisUrl());
    await client.publish(`${keyPrefix}:1:revocations`, 'person_1');
    client.disconnect();
    await untilStatuses(token, [401]);
  });
});

it('a replica that starts later receives it before its first request', async () => {
  const token = await issuer.sign();
  await revoke({ token });
  await start(jwtSettings(issuer));
  expect(await statuses(token)).toEqual([401]);
  const client = new Redis(sharedRedisUrl());
  expect(await client.ttl(`${keyPrefix}:1:revocations:record`)).toBeGreaterThan(23 * 3600);
  client.disconnect();
});

it('a replica that was disconnected receives it when Redis is back', async () => {
  redis = await startRedisServer();
  const gateway = await start(jwtSettings(issuer), redis.url);
  const token = await issuer.sign();
  expect(await statuses(token)).toEqual([200]);
  await redis.kill();
  await vi.waitFor(async () => expect(await gateway.metrics()).toContain('weir_revocations_heard 0'), {
    timeout: 60_000,
  });
  expect(await statuses(token)).toEqual([200]);
  await redis.start();
  await revoke({ token }, redis.url);
  await untilStatuses(token, [401]);
  expect(await gateway.metrics()).toContain('weir_revocations_heard 1');
});

describe('the command', () => {
  it('reports that it cannot revoke with the memory store', async () => {
    const config = await writeConfiguration({ upstreamUrl: 'http://127.0.0.1:1' });
    const { failure } = await revokeHere({ config, principal: 'person_1' });
    expect(failure).toContain('revocations travel through Redis');
  });

  it('refuses an invalid number of hours', async () => {
    const config = await writeConfiguration({ upstreamUrl: 'http://127.0.0.1:1', store: store() });
    const { failure } = await revokeHere({ config, principal: 'person_1', hours: 'ever' });
    expect(failure).toBe('--hours takes a number above 0, and at most 8760.');
  });
});

import { createHash } from 'node:crypto';
import { Redis } from 'ioredis';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { RevokeOptions } from '../../src/commands/revoke.ts';
import { writeConfiguration } from '../fixtures/configuration.ts';
import { startGateway, type TestGateway } from '../fixtures/gateway.ts';
import { type RedisServer, startRedisServer } from '../fixtures/redis-server.ts';
import { sharedRedisUrl, uniquePrefix } from '../fixtures/redis-url.ts';
import { revokeHere } from '../fixtures/revoke.ts';
import type { CommandHere } from '../fixtures/run-here.ts';

const TOKEN = 'lonely';
const TARGET = `sha256:${createHash('sha256').update(TOKEN).digest('hex')}`;

let keyPrefix: string;
let config: string;
const closing: (() => Promise<unknown>)[] = [];
const store = (url = sharedRedisUrl()) => ({ kind: 'redis', url, keyPrefix, deadlineMs: 5000 });

beforeEach(async () => {
  keyPrefix = uniquePrefix();
  config = await writeConfiguration({ upstreamUrl: 'http://127.0.0.1:1', store: store() });
});
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

const revoke = (options: Omit<RevokeOptions, 'config'>): Promise<CommandHere> =>
  revokeHere({ config, ...options });

async function start(url?: string): Promise<TestGateway> {
  const gateway = await startGateway({ store: store(url) });
  closing.push(() => gateway.close());
  return gateway;
}

async function untilStatus(gateways: readonly TestGateway[], token: string, status: number): Promise<void> {
  await vi.waitFor(
    async () => {
      const answers = await Promise.all(gateways.map((one) => one.send('GET', '/v3/things', { token })));
      expect(answers.map((answer) => answer.status)).toEqual(gateways.map(() => status));
    },
    { timeout: 60_000, interval: 50 },
  );
}

interface Entry {
  readonly kind: string;
  readonly target: string;
  readonly at: string;
  readonly until: string;
}

async function listed(): Promise<readonly Entry[]> {
  return JSON.parse((await revoke({ list: true, json: true })).stdout) as Entry[];
}

it('--list shows what is revoked, and --undo ends it at every replica', async () => {
  const gateways = [await start(), await start()];
  await revoke({ token: TOKEN });
  await revoke({ principal: 'person_1' });
  await untilStatus(gateways, TOKEN, 401);
  await untilStatus(gateways, 'person', 401);
  expect((await listed()).map(({ kind, target }) => [kind, target]).sort()).toEqual([
    ['principal', 'person_1'],
    ['token', TARGET],
  ]);

  expect((await revoke({ undo: true, token: TOKEN })).stdout).toBe('The token is no longer revoked.\n');
  await untilStatus(gateways, TOKEN, 200);
  await untilStatus(gateways, 'person', 401);
  expect((await revoke({ list: true })).stdout).toMatch(
    /^principal {2}person_1 {2}revoked \S+, remembered until \S+, (not tried since|last tried \S+ from 127\.0\.0\.1)\n$/,
  );
  await revoke({ undo: true, principal: 'person_1' });
  await untilStatus(gateways, 'person', 200);
  expect((await revoke({ list: true })).stdout).toBe('Nothing is revoked.\n');

  await revoke({ token: TOKEN });
  await untilStatus(gateways, TOKEN, 401);
});

it('a replica that starts after --undo accepts the token', async () => {
  await revoke({ token: TOKEN });
  await revoke({ undo: true, token: TOKEN });
  await untilStatus([await start()], TOKEN, 200);
});

it('--undo reports a target that is not revoked', async () => {
  const { failure } = await revoke({ undo: true, token: TOKEN });
  expect(failure).toBe('This token is not revoked: weir revoke --list shows what is.');
});

it('a revocation is stored for its hours, and no longer', async () => {
  await revoke({ token: TOKEN, hours: '2' });
  await revoke({ principal: 'person_1', hours: '5' });
  const [first, second] = await listed();
  const hours = ({ at, until }: Entry) => (Date.parse(until) - Date.parse(at)) / 3_600_000;
  expect([first, second].map((entry) => entry && hours(entry))).toEqual([2, 5]);
  const client = new Redis(sharedRedisUrl());
  const expiresMs = await client.call('PEXPIRETIME', `${keyPrefix}:1:revocations:record`);
  client.disconnect();
  expect(expiresMs).toBe(Date.parse(second?.until ?? ''));
});

describe('a Redis that restarts without its data', () => {
  let redis: RedisServer;
  beforeEach(async () => {
    redis = await startRedisServer();
    closing.push(() => redis.stop());
    config = await writeConfiguration({ upstreamUrl: 'http://127.0.0.1:1', store: store(redis.url) });
  });

  it('receives its revocations again from any replica that kept running', async () => {
    const gateway = await start(redis.url);
    const { stdout } = await revoke({ token: TOKEN });
    expect(stdout).toContain('a revocation is lost if Redis and every gateway restart at the same time');
    await untilStatus([gateway], TOKEN, 401);
    await redis.kill();
    await redis.start();
    await vi.waitFor(async () => expect(await listed()).toMatchObject([{ target: TARGET }]), {
      timeout: 60_000,
    });
    const later = await start(redis.url);
    await untilStatus([later], TOKEN, 401);
  });

  it('is named as the reason why nothing was revoked while it is gone', async () => {
    await redis.kill();
    const { failure } = await revoke({ token: TOKEN });
    expect(failure).toMatch(/^Nothing was revoked: Redis does not take the command \(.*ECONNREFUSED.*\)\.$/);
  });
});

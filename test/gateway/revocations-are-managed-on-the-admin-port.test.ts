import { hash } from 'node:crypto';
import { Redis } from 'ioredis';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ShownRevocation } from '../../src/admin/facts/revocation-api.ts';
import { writeConfiguration } from '../fixtures/configuration.ts';
import { startGateway, type TestGateway } from '../fixtures/gateway.ts';
import { startRedisServer } from '../fixtures/redis-server.ts';
import { sharedRedisUrl, uniquePrefix } from '../fixtures/redis-url.ts';
import { revokeHere } from '../fixtures/revoke.ts';

const SOON = { timeout: 60_000, interval: 50 };
const HOUR_MS = 3_600_000;
const REASON = { why: 'leaked', by: 'alice' };
const SECRET = 'zq-a-pasted-token';
const SIGNED = `eyJhbGciOiJSUzI1NiJ9.${SECRET}.${SECRET}`;

const keyPrefix = uniquePrefix();
const store = { kind: 'redis', url: sharedRedisUrl(), keyPrefix, deadlineMs: 5_000 };
const lines: string[] = [];
const output = { write: (line: string) => void lines.push(line), flushSync() {} };
let gateways: readonly [TestGateway, TestGateway];
let config: string;

beforeAll(async () => {
  const settings = { log: { level: 'info' } };
  const log = { log: pino({}, output), lines: output };
  gateways = [await startGateway({ store, settings, log }), await startGateway({ store, settings, log })];
  config = await writeConfiguration({ upstreamUrl: 'http://127.0.0.1:1', store });
});
afterAll(() => Promise.all(gateways.map((gateway) => gateway.close())));

function send(method: string, path = '', body?: object, gateway = gateways[0], headers = {}) {
  return fetch(`${gateway.adminUrl}/revocations${path}`, {
    method,
    headers: { ...(body === undefined ? {} : { 'Content-Type': 'application/json' }), ...headers },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
}

const statusOf = async (gateway: TestGateway, token: string) =>
  (await gateway.send('GET', '/v3/things', { token })).status;

async function list(gateway = gateways[0]): Promise<readonly ShownRevocation[]> {
  return (await (await send('GET', '', undefined, gateway)).json()) as ShownRevocation[];
}

const errorOf = async (response: Response) => ((await response.json()) as { error: string }).error;

const audits = () =>
  lines
    .map((line) => JSON.parse(line) as Record<string, unknown>)
    .filter(({ audit }) => audit)
    .map(({ action, by, why, revocation }) => ({ action, by, why, revocation }));

/** Everything that Redis keeps of these gateways' revocations. */
async function recorded(): Promise<string> {
  const client = new Redis(sharedRedisUrl());
  const texts = await client.zrange(`${keyPrefix}:1:revocations:record`, '0', '-1');
  client.disconnect();
  return texts.join('\n');
}

it.each([
  ['token', { token: ' Bearer lonely\n' }, 'lonely', `sha256:${hash('sha256', 'lonely').slice(0, 16)}`],
  ['principal', { principal: 'person_1' }, 'person', 'person_1'],
])('a %s is revoked, listed and restored at every replica', async (kind, body, token, target) => {
  const [acting, other] = gateways;
  const response = await send('POST', '', { ...body, for: '2h', ...REASON });
  const made = (await response.json()) as ShownRevocation;
  expect([response.status, made]).toEqual([201, expect.objectContaining({ kind, target, ...REASON })]);
  expect(Date.parse(made.until) - Date.parse(made.at)).toBe(2 * HOUR_MS);
  expect(await statusOf(acting, token)).toBe(401);
  await expect.poll(() => statusOf(other, token), SOON).toBe(401);
  expect(await statusOf(acting, 'organization')).not.toBe(401);
  const { at, until } = made;
  for (const gateway of gateways) {
    const lastTried = { at: expect.any(String), from: '127.0.0.1' };
    await expect.poll(() => list(gateway), SOON).toEqual([{ kind, target, at, until, ...REASON, lastTried }]);
  }

  const undone = await send('DELETE', `/${kind}s/${target}?why=found&by=bob`, undefined, other);
  expect([undone.status, await undone.json()]).toEqual([
    200,
    expect.objectContaining({ kind, target, why: 'found', by: 'bob' }),
  ]);
  expect(await statusOf(other, token)).toBe(200);
  await expect.poll(() => statusOf(acting, token), SOON).toBe(200);
  for (const gateway of gateways) expect(await list(gateway)).toEqual([]);
  expect(audits().slice(-2)).toEqual([
    { action: 'revoked', ...REASON, revocation: { kind, target, until } },
    { action: 'revocation undone', why: 'found', by: 'bob', revocation: { kind, target, until } },
  ]);
});

it('weir revoke and the admin port list and undo the same revocations', async () => {
  await revokeHere({ config, principal: 'person_2' });
  await expect
    .poll(async () => (await list()).map(({ target, why, by }) => ({ target, why, by })), SOON)
    .toEqual([{ target: 'person_2', why: null, by: null }]);
  expect((await send('DELETE', '/principals/person_2?why=over')).status).toBe(200);
  expect((await revokeHere({ config, list: true })).stdout).toBe('Nothing is revoked.\n');
});

it.each([
  [{ token: SECRET, principal: 'person_1' }, /either token or principal/],
  [{}, /either token or principal/],
  [{ token: 5 }, /either token or principal/],
  [{ token: `${SECRET} ${SECRET}` }, /token was given is not a token/],
  [
    { token: `sha256:${hash('sha256', 'lonely').slice(0, 16)}` },
    /^token: a digest has 64 hex digits after sha256:/,
  ],
  [{ principal: SIGNED }, /principal was given what looks like a token: use token/],
  [{ principal: 'lonely' }, /principal was given a token: use token/],
  [{ principal: SECRET }, /The principal is unknown/],
  [{ principal: 'svc_33' }, /Did you mean svc_3\?/],
  [{ token: 'lonely', [SECRET]: true }, /Send a JSON object/],
  [{ token: 'lonely', for: '2' }, /for: must be a time/],
  [{ token: 'lonely', for: '400d' }, /for: must be a time/],
  [{ token: 'lonely', why: ' ' }, /why: must be text/],
])('%j is refused without repeating it, and revokes nothing', async (body, message) => {
  const before = lines.length;
  const response = await send('POST', '', { ...REASON, ...body });
  expect(response.status).toBe(400);
  const error = await errorOf(response);
  expect(error).toMatch(message);
  expect(error).not.toContain(SECRET);
  expect([await list(), lines.length]).toEqual([[], before]);
});

it('no token gets into an answer, a log line or Redis, though it is unknown', async () => {
  const response = await send('POST', '', { token: SECRET, ...REASON });
  const made = await response.text();
  expect((JSON.parse(made) as { notes: string[] }).notes.join()).toContain('has no such token');
  const digest = hash('sha256', SECRET);
  const shown = [made, JSON.stringify(await list()), ...lines].join('\n');
  expect(shown).toContain(digest.slice(0, 16));
  expect(shown).not.toContain(digest.slice(0, 17));
  expect(shown + (await recorded())).not.toContain(SECRET);
  for (const path of [SECRET, digest.slice(0, 15), hash('sha256', 'other')]) {
    const refused = await send('DELETE', `/tokens/${path}?why=x`);
    expect([refused.status, await refused.text()]).toEqual([400, expect.not.stringContaining(path)]);
  }
  expect((await send('DELETE', `/tokens/${digest}`)).status).toBe(400);
  expect((await send('DELETE', `/tokens/${digest}?why=typo`)).status).toBe(200);
  expect((await send('DELETE', `/tokens/${digest}?why=again`)).status).toBe(400);
});

it('no page of another site can act', async () => {
  const headers = { Origin: 'https://attacker.example' };
  const body = { principal: 'person_1', ...REASON };
  expect((await send('POST', '', body, gateways[0], headers)).status).toBe(403);
  const form = await fetch(`${gateways[0].adminUrl}/revocations`, {
    method: 'POST',
    body: JSON.stringify(body),
  });
  expect(form.status).toBe(400);
  expect(await list()).toEqual([]);
});

describe('without a Redis that carries revocations', () => {
  it('the memory store answers what to do instead', async () => {
    const gateway = await startGateway();
    try {
      const answers = [
        await send('GET', '', undefined, gateway),
        await send('POST', '', { principal: 'person_1', ...REASON }, gateway),
        await send('DELETE', '/principals/person_1?why=x', undefined, gateway),
      ];
      for (const answer of answers) {
        expect(answer.status).toBe(409);
        expect(await errorOf(answer)).toMatch(/memory store, and revocations travel through Redis: restart/);
      }
    } finally {
      await gateway.close();
    }
  });

  it('nothing is revoked while Redis is down, what was revoked stays so, and can be undone later', async () => {
    const server = await startRedisServer();
    const gateway = await startGateway({ store: { ...store, url: server.url } });
    try {
      await send('POST', '', { principal: 'person_1', ...REASON }, gateway);
      await server.kill();
      const refused = await send('POST', '', { principal: 'person_2', ...REASON }, gateway);
      expect([refused.status, await errorOf(refused)]).toEqual([
        503,
        expect.stringContaining('Nothing was changed: Redis does not take the command'),
      ]);
      expect((await list(gateway)).map(({ target }) => target)).toEqual(['person_1']);
      await server.start();
      const undo = () => send('DELETE', '/principals/person_1?why=over', undefined, gateway);
      await expect.poll(async () => (await undo()).status, SOON).toBe(200);
      expect(await statusOf(gateway, 'person')).toBe(200);
    } finally {
      await gateway.close();
      await server.stop();
    }
  });
});

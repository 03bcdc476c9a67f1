import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readConfiguration } from '../../../src/process/configuration.ts';
import { type RunningGateway, runGateway } from '../../../src/process/run.ts';
import { writeConfiguration } from '../../fixtures/configuration.ts';
import { sendRaw } from '../../fixtures/raw.ts';
import { uniqueRedisStore } from '../../fixtures/redis-url.ts';
import { startUpstream, type TestUpstream } from '../../fixtures/upstream.ts';

const closing: (() => Promise<unknown>)[] = [];
afterAll(async () => {
  for (const close of closing.reverse()) await close();
});

/** Keys of another provider: an endpoint that knows one key. */
const PLATFORM_KEY = 'wk_0123456789abcdef';

async function startKeyOwners(): Promise<{ readonly url: string; readonly asked: string[] }> {
  const asked: string[] = [];
  const known = createHash('sha256').update(PLATFORM_KEY).digest('hex');
  const server = createServer((request, response) => {
    asked.push(request.url ?? '');
    if (request.url?.endsWith(known)) response.end('{"principal":"svc_key"}');
    else response.writeHead(404).end('{}');
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  closing.push(async () => server.close());
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked };
}

const OTHER_IDENTITIES = {
  tokens: { 'other-key': 'svc_other' },
  principals: {
    svc_other: { type: 'ServiceAccount', account: 'acct_other' },
    svc_key: { type: 'ServiceAccount', account: 'acct_key' },
  },
  accounts: { acct_other: {}, acct_key: {} },
};

let gateway: RunningGateway;
let upstream: TestUpstream;
let owners: Awaited<ReturnType<typeof startKeyOwners>>;
let otherFile: string;
beforeAll(async () => {
  upstream = await startUpstream();
  closing.push(() => upstream.close());
  owners = await startKeyOwners();
  const file = await writeConfiguration({
    upstreamUrl: upstream.url,
    store: uniqueRedisStore(),
    settings: {
      credentials: [
        { kind: 'header', name: 'X-API-Key' },
        { kind: 'basic', forward: false, identity: { kind: 'static', file: 'other.yaml' } },
        {
          kind: 'header',
          name: 'Api-Token',
          forward: false,
          identity: { kind: 'api-keys', file: 'other.yaml', url: `${owners.url}/{digest}` },
        },
      ],
    },
  });
  otherFile = join(dirname(file), 'other.yaml');
  await writeFile(otherFile, JSON.stringify(OTHER_IDENTITIES));
  gateway = await runGateway(await readConfiguration(file, {}));
  closing.push(() => gateway.close());
});

const basic = (text: string) => `Basic ${Buffer.from(text).toString('base64')}`;

async function get(headers: Record<string, string>): Promise<Response> {
  upstream.seen.length = 0;
  return fetch(`${gateway.url}/v3/things`, { headers });
}

/** The status, and the identity fields that the upstream received. */
async function outcome(headers: Record<string, string>): Promise<string> {
  const { status } = await get(headers);
  const seen = upstream.seen[0]?.headers;
  return seen === undefined ? `${status}` : `${status} ${seen['x-principal-id']} ${seen['x-account-id']}`;
}

it('the metrics show from the start what can come of the keys of each provider', async () => {
  const metrics = await (await fetch(`${gateway.adminUrl}/metrics`)).text();
  expect(metrics).toContain(
    'weir_identifications_total{source="api-keys",outcome="unavailable",cached="false"} 0',
  );
  expect(metrics).toContain(
    'weir_identity_provider_duration_seconds_count{provider="api-keys",outcome="failed"} 0',
  );
});

describe('a request is authenticated by the one credential that it carries', () => {
  it.each([
    ['a bearer token', { Authorization: 'Bearer service' }, '200 svc_1 acct_1'],
    ['a key in a header', { 'X-API-Key': 'service' }, '200 svc_1 acct_1'],
    ['the user name of Basic', { Authorization: basic('other-key:') }, '200 svc_other acct_other'],
    ['that, with a password', { Authorization: basic('other-key:ignored') }, '200 svc_other acct_other'],
    ['a key of an endpoint', { 'Api-Token': PLATFORM_KEY }, '200 svc_key acct_key'],
    ['a key of its provider file', { 'Api-Token': 'other-key' }, '200 svc_other acct_other'],
  ])('%s', async (_, headers, expected) => {
    expect(await outcome(headers as Record<string, string>)).toBe(expected);
  });

  it.each([
    ['no credential', {}, '401'],
    ['a key of another provider', { 'X-API-Key': 'other-key' }, '401'],
    ['a token of another provider', { Authorization: basic('service:') }, '401'],
    ['a bearer token of another provider', { Authorization: 'Bearer other-key' }, '401'],
    ['an unknown key', { 'Api-Token': 'wk_ffffffffffffffff' }, '401'],
    ['an empty key', { 'X-API-Key': '' }, '401'],
    ['Basic without a user', { Authorization: basic(':service') }, '401'],
    ['another scheme', { Authorization: 'Digest x' }, '401'],
    ['a foreign Account', { 'X-API-Key': 'service', 'X-Service-Account': 'acct_other' }, '403'],
    ['two credentials', { Authorization: 'Bearer service', 'X-API-Key': 'service' }, '400'],
    ['two, one of them invalid', { Authorization: 'Bearer service', 'Api-Token': 'x' }, '400'],
    ['two headers', { 'X-API-Key': 'service', 'Api-Token': PLATFORM_KEY }, '400'],
    ['one header in two spellings', { 'X-API-Key': 'service', X_API_Key: 'service' }, '400'],
  ])('%s is refused, and charged to nobody', async (_, headers, expected) => {
    const response = await get(headers as Record<string, string>);
    expect([`${response.status}`, response.headers.get('RateLimit')]).toEqual([expected, null]);
    expect(upstream.seen).toEqual([]);
  });

  it('the same header twice is a 400', async () => {
    const key = 'X-API-Key: service\r\n';
    const request = `GET /v3/things HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${key}${key}\r\n`;
    expect((await sendRaw(gateway.url ?? '', request)).statuses).toEqual([400]);
  });
});

it('a credential is forwarded, unless its setting says otherwise', async () => {
  await get({ 'X-API-Key': 'service' });
  expect(upstream.seen[0]?.headers['x-api-key']).toBe('service');
  await get({ 'Api-Token': PLATFORM_KEY });
  expect(upstream.seen[0]?.headers['api-token']).toBeUndefined();
  await get({ Authorization: basic('other-key:') });
  expect(upstream.seen[0]?.headers.authorization).toBeUndefined();
  await get({ Authorization: 'Bearer service' });
  expect(upstream.seen[0]?.headers.authorization).toBe('Bearer service');
});

it('the endpoint sees the digest of a key only, and is not called for what cannot be one', async () => {
  owners.asked.length = 0;
  await get({ 'Api-Token': PLATFORM_KEY });
  await get({ 'Api-Token': 'wk_short' });
  await get({ 'X-API-Key': PLATFORM_KEY });
  expect(owners.asked).toHaveLength(1);
  expect(owners.asked.join()).not.toContain(PLATFORM_KEY);
});

it('a key of any provider can be revoked', async () => {
  const revoke = (target: object) =>
    fetch(`${gateway.adminUrl}/revocations`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ ...target, why: 'test', by: 'test' }),
    });
  expect((await revoke({ token: PLATFORM_KEY })).status).toBe(201);
  await expect.poll(() => outcome({ 'Api-Token': PLATFORM_KEY })).toBe('401');
  // Known from the file of that credential only.
  expect((await revoke({ principal: 'svc_other' })).status).toBe(201);
  await expect.poll(() => outcome({ Authorization: basic('other-key:') })).toBe('401');
  expect((await revoke({ principal: 'svc_nobody' })).status).toBe(400);
});

it('a changed file of a credential is in force while the gateway runs', async () => {
  const tokens = { 'new-key': 'svc_key' };
  await writeFile(otherFile, JSON.stringify({ ...OTHER_IDENTITIES, tokens }));
  const send = () => outcome({ Authorization: basic('new-key:') });
  await expect.poll(send, { timeout: 20_000 }).toBe('200 svc_key acct_key');
  expect(await outcome({ Authorization: basic('other-key:') })).toBe('401');
});

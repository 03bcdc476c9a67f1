import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { promisify } from 'node:util';
import { Ajv2020 } from 'ajv/dist/2020.js';
import express from 'express';
import Fastify from 'fastify';
import { load } from 'js-yaml';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { DECISIONS } from '../fixtures/decisions.ts';
import { startGateway, type TestGateway } from '../fixtures/gateway.ts';
import { jwtSettings, startIssuer } from '../fixtures/issuer.ts';
import { linesOf } from '../fixtures/log-lines.ts';

const { weir: forExpress } = await import(`${process.cwd()}/examples/decide/express.mjs`);
const { weir: forFastify } = await import(`${process.cwd()}/examples/decide/fastify.mjs`);

/** As much of every answer as these tests look at. */
interface Answer {
  readonly status: number;
  readonly code?: string;
  readonly retryAfterSeconds: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly buckets: readonly { readonly remaining: number }[];
  readonly errors?: readonly { readonly field: string }[];
  readonly problem?: { readonly errors?: readonly object[] };
  readonly decisions?: readonly Answer[];
}

const TOKEN = 'a-token-of-the-decisions-port';
const READ = { method: 'GET', path: '/v3/things' };

const document = load(readFileSync('docs/decide.openapi.yaml', 'utf8')) as object;
const ajv = new Ajv2020({ strict: false, validateFormats: false }).addSchema(document, 'decide');
const isA = (name: string, value: unknown) => {
  const isValid = ajv.validate(`decide#/components/schemas/${name}`, value);
  return isValid ? true : ajv.errorsText();
};

// The examples give Weir a quarter of a second; a busy machine may need longer.
const timeout = AbortSignal.timeout.bind(AbortSignal);
vi.spyOn(AbortSignal, 'timeout').mockImplementation(() => timeout(60_000));

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway({
    settings: { decisions: { ...DECISIONS, token: TOKEN }, log: { level: 'info' } },
    limits: { accounts: { acct_3: { 'account-read': 12 }, acct_4: { 'account-read': 10 } } },
  });
});
afterAll(() => gateway.close());

/** Asks, and holds the answer against the document. */
async function ask(question: unknown, headers: Readonly<Record<string, string>> = {}) {
  const body = typeof question === 'string' ? question : JSON.stringify(question);
  const response = await fetch(`${gateway.decisionsUrl}/decide`, { method: 'POST', headers, body });
  const answer = (await response.json()) as Answer;
  const isBatch = answer.decisions !== undefined;
  const schema = response.status === 200 ? (isBatch ? 'Decisions' : 'Decision') : 'Problem';
  expect(isA(schema, answer)).toBe(true);
  return { status: response.status, answer };
}

const authorized = { Authorization: `Bearer ${TOKEN}` };

describe('a program', () => {
  it('charges only the limits that it chooses', async () => {
    const owned = await startGateway({
      settings: { decisions: { ...DECISIONS, token: TOKEN }, operations: { list: [] } },
      limits: { limits: { jobs: { per: 'account', points: 2, window: '1h' } } },
    });
    const asked = async (more: object) => {
      const body = JSON.stringify({ account: 'acct_3', ...READ, ...more });
      const init = { method: 'POST', headers: authorized, body };
      return (await (await fetch(`${owned.decisionsUrl}/decide`, init)).json()) as Answer;
    };
    const chosen = await asked({ limits: ['jobs'], cost: 2 });
    expect(chosen).toMatchObject({ allowed: true, buckets: [{ bucket: 'jobs', remaining: 0 }] });
    expect(chosen.headers?.['RateLimit-Policy']).toBe('"jobs";q=2;w=3600');
    expect((await asked({ limits: ['jobs'] })).status).toBe(429);
    expect(await asked({ limits: ['account-read'] })).toMatchObject({
      allowed: true,
      buckets: [{ bucket: 'account-read', remaining: 19 }],
    });
    await owned.close();
  });

  it('asks for the bearer of a token, and gets what the gateway would do', async () => {
    const { answer } = await ask({ token: 'lonely', ...READ });
    expect(answer).toMatchObject({ allowed: true, status: 200, account: 'acct_3', cost: 1, degraded: false });
    expect(answer.buckets).toMatchObject([{ bucket: 'account-read', limit: 12, remaining: 11 }]);
    const next = await gateway.send('GET', '/v3/things', { token: 'lonely' });
    expect(next.headers.get('ratelimit')).toContain('"account-read";r=10');
    expect(answer.headers['RateLimit-Policy']).toBe(next.headers.get('ratelimit-policy'));
  });

  it('asks for the Account that a client names in X-Service-Account', async () => {
    const asked = async (serviceAccount?: string) =>
      (await ask({ token: 'organization', serviceAccount, ...READ })).answer;
    expect(await asked('acct_2')).toMatchObject({
      status: 200,
      account: 'acct_2',
      organization: 'org_1',
      principal: 'svc_org',
      principalType: 'ServiceAccount',
    });
    for (const refused of [undefined, '', 'acct_3', 'acct_2, acct_2'])
      expect(await asked(refused)).toMatchObject({ status: 403, account: null, principal: null });
    expect((await ask({ serviceAccount: 'acct_2', ...READ })).answer.status).toBe(401);
  });

  it('names an Account, its principal and a cost, and is refused as a client would be', async () => {
    const question = { account: 'acct_4', principal: 'svc_job', ...READ, cost: 6 };
    expect((await ask(question, authorized)).answer).toMatchObject({
      allowed: true,
      account: 'acct_4',
      cost: 6,
    });
    const { status, answer } = await ask(question, authorized);
    expect(status).toBe(200);
    expect(answer).toMatchObject({ allowed: false, status: 429, problem: { code: 'RateLimitExceeded' } });
    expect(answer.retryAfterSeconds).toBe(Number(answer.headers['Retry-After']));
    expect(gateway.lines.some((line) => line.includes('"principal":"svc_job"'))).toBe(true);
  });

  it('names an Account though only tokens say which there are, and charges it without an Organization', async () => {
    const issuer = await startIssuer();
    const settings = { ...jwtSettings(issuer), decisions: { ...DECISIONS, token: TOKEN } };
    const owned = await startGateway({ settings, limits: { accounts: { acct_9: { 'account-read': 17 } } } });
    const body = JSON.stringify({ account: 'acct_9', principal: 'svc_job', ...READ });
    const init = { method: 'POST', headers: authorized, body };
    const answer = await (await fetch(`${owned.decisionsUrl}/decide`, init)).json();
    await owned.close();
    await issuer.close();
    expect(answer).toMatchObject({ allowed: true, status: 200, account: 'acct_9', organization: null });
    expect(answer).toMatchObject({ buckets: [{ bucket: 'account-read', limit: 17, remaining: 16 }] });
  });

  it('asks for an address, whose port makes no difference', async () => {
    const operations = { list: [{ method: 'GET', path: '/open', public: true, cost: 1 }] };
    const open = await startGateway({
      settings: { decisions: { ...DECISIONS, token: TOKEN }, operations },
      limits: { defaults: { 'address-read': 10 } },
    });
    const asked = async (address: string) => {
      const body = JSON.stringify({ address, method: 'GET', path: '/open' });
      const init = { method: 'POST', headers: authorized, body };
      return (await (await fetch(`${open.decisionsUrl}/decide`, init)).json()) as Answer;
    };
    const left: unknown[] = [];
    for (const address of ['192.0.2.1', '192.0.2.1:80', '[::ffff:192.0.2.1]:81', '::ffff:192.0.2.1'])
      left.push((await asked(address)).buckets[0]?.remaining);
    expect(left).toEqual([9, 8, 7, 6]);
    left.length = 0;
    for (const address of ['2001:db8::1', '[2001:db8::2]', '[2001:DB8::3]:443'])
      left.push((await asked(address)).buckets[0]?.remaining);
    expect(left).toEqual([9, 8, 7]);
    const block = { method: 'PUT', body: JSON.stringify({ for: '1h', why: 'w', by: 'b', force: true }) };
    const headers = { 'Content-Type': 'application/json' };
    await fetch(`${open.adminUrl}/blocks/addresses/192.0.2.1`, { ...block, headers });
    expect((await asked('192.0.2.1:82')).status).toBe(429);
    await open.close();
  });

  it('peeks without spending, counting or logging', async () => {
    const peek = { account: 'acct_2', ...READ, peek: true };
    const lines = gateway.lines.length;
    const first = (await ask(peek, authorized)).answer;
    const second = (await ask(peek, authorized)).answer;
    expect(second.buckets[0]?.remaining).toBe(first.buckets[0]?.remaining);
    expect(gateway.lines).toHaveLength(lines);
  });

  it('asks many questions at once, each decided separately and answered in order', async () => {
    const { answer } = await ask({
      decisions: [
        { token: 'service', ...READ },
        { token: 'no such token', ...READ },
        { token: 'service', method: 'GET', path: '/v3/a/../b' },
        { ...READ },
        { token: 'service', operation: 'no such operation' },
        { token: 'service', method: 'BREW', path: '/v3/things' },
      ],
    });
    expect(answer.decisions?.map(({ status }) => status)).toEqual([200, 401, 400, 401, 404, 405]);
  });

  it('is counted by the outcome of each decision', async () => {
    expect(await gateway.metrics()).toMatch(
      /weir_decisions_total\{protocol="decide",outcome="admitted"\} [1-9]/,
    );
  });
});

describe('what a program may not do', () => {
  it.each([
    { account: 'acct_1', ...READ },
    { token: 'service', ...READ, cost: 2 },
    { token: 'service', ...READ, limits: ['account-read'] },
  ])('name an Account or a cost without the token of the port: %j', async (question) => {
    const { status, answer } = await ask(question);
    expect([status, answer.code]).toEqual([403, 'Forbidden']);
  });

  it('ask with another token', async () => {
    expect(
      (await ask({ token: 'service', ...READ }, { Authorization: 'Bearer something-else' })).status,
    ).toBe(401);
  });

  it('ask for more than can ever be admitted', async () => {
    const { answer } = await ask({ account: 'acct_4', ...READ, cost: 11 }, authorized);
    expect(answer).toMatchObject({ allowed: false, status: 422, problem: { errors: [{ field: 'cost' }] } });
  });

  it('ask for more than can ever be admitted: no limit is reached', async () => {
    const owned = await startGateway({
      settings: {
        decisions: { ...DECISIONS, token: TOKEN },
        log: { level: 'info' },
        notifications: { log: true },
      },
      limits: { limits: { jobs: { per: 'account', points: 10, window: '1h' } } },
    });
    const asked = async (cost: number) => {
      const body = JSON.stringify({ account: 'acct_3', ...READ, cost });
      const init = { method: 'POST', headers: authorized, body };
      return (await (await fetch(`${owned.decisionsUrl}/decide`, init)).json()) as Answer;
    };
    expect((await asked(11)).problem?.errors).toEqual([
      { field: 'cost', message: 'is above the limit of jobs, which is 10 points' },
    ]);
    expect(linesOf(owned, 'request')).toMatchObject([{ status: 422, outcome: 'refused' }]);
    expect(await owned.metrics()).not.toMatch(/^weir_decisions_total\{.*outcome="denied"\} [1-9]/m);
    expect((await asked(8)).status).toBe(200);
    await expect
      .poll(() => linesOf(owned, 'limit.reached'))
      .toMatchObject([{ bucket: 'jobs', percent: 80, used: 8 }]);
    await owned.close();
  });

  it.each([
    ['{', 400, undefined],
    ['[]', 422, 'body'],
    ['{}', 422, 'body'],
    [{ token: 1, ...READ }, 422, 'token'],
    [{ tokn: 'service', ...READ }, 422, 'tokn'],
    [{ token: 'service', address: '192.0.2.1', ...READ }, 422, 'body'],
    [{ address: 'nowhere', ...READ }, 422, 'address'],
    [{ account: 'acct_1', serviceAccount: 'acct_2', ...READ }, 422, 'serviceAccount'],
    [{ token: 'service', ...READ, limits: [''] }, 422, 'limits[0]'],
    [{ token: 'service', ...READ, 'a/b~c': 1 }, 422, 'a/b~c'],
    [{ token: 'service', operation: 'x', ...READ }, 422, 'body'],
    [{ token: 'service', method: 'GET' }, 422, 'body'],
    [{ token: 'service', ...READ, cost: 0 }, 422, 'cost'],
    [{ decisions: [] }, 422, 'decisions'],
    [{ decisions: Array(101).fill(READ) }, 422, 'decisions'],
    [{ decisions: [READ, { token: 'service', ...READ, cost: 'x' }] }, 422, 'decisions[1].cost'],
    ['{"token":"service","token":"lonely","method":"GET","path":"/v3/things"}', 400, undefined],
  ])('ask what cannot be read: %j', async (question, status, field) => {
    const { answer, ...rest } = await ask(question);
    expect([rest.status, answer.errors?.[0]?.field]).toEqual([status, field]);
  });

  it('choose limits that the request does not have: nothing is charged', async () => {
    const { answer } = await ask(
      { account: 'acct_3', ...READ, limits: ['account-write', 'hour'] },
      authorized,
    );
    expect(answer).toMatchObject({ allowed: false, status: 422, buckets: [] });
    expect(answer.problem?.errors).toEqual([
      { field: 'limits[0]', message: 'is no limit of this request' },
      { field: 'limits[1]', message: 'is no limit of this request' },
    ]);
  });

  it('send more than a megabyte, or anything but POST', async () => {
    expect((await ask({ token: 'x'.repeat(1_100_000), ...READ })).status).toBe(413);
    const got = await fetch(`${gateway.decisionsUrl}/decide`);
    expect([got.status, got.headers.get('allow')]).toEqual([405, 'POST']);
  });

  it('ask from an address that is not trusted, unless it has the token', async () => {
    const far = await startGateway({
      settings: { decisions: { ...DECISIONS, trusted: ['192.0.2.0/24'], token: TOKEN } },
    });
    const statusOf = async (headers: Record<string, string>) => {
      const body = JSON.stringify({ token: 'service', ...READ });
      return (await fetch(`${far.decisionsUrl}/decide`, { method: 'POST', headers, body })).status;
    };
    expect([await statusOf({}), await statusOf(authorized)]).toEqual([403, 200]);
    await far.close();
  });

  it.each(['/decide', '/settle'])(
    'post to %s from a page in a browser, unless it has the token',
    async (path) => {
      const post = async (origin: string, more: Readonly<Record<string, string>> = {}) => {
        const headers = { Origin: origin, 'Content-Type': 'text/plain', ...more };
        const body = JSON.stringify({ token: 'service', ...READ });
        return fetch(gateway.decisionsUrl + path, { method: 'POST', headers, body });
      };
      for (const origin of ['https://page.example', gateway.decisionsUrl, 'null']) {
        const refused = await post(origin);
        expect([origin, refused.status]).toEqual([origin, 403]);
        expect(await refused.json()).toMatchObject({
          code: 'Forbidden',
          detail: expect.stringMatching(/^A page in a browser/),
        });
      }
      expect((await post('https://page.example', authorized)).status).toBe(path === '/decide' ? 200 : 422);
    },
  );
});

describe('the example for', () => {
  const statusesAt = async (url: string) => {
    const statuses: number[] = [];
    for (let count = 0; count < 25 && !statuses.includes(429); count++) {
      statuses.push(
        (await fetch(`${url}/v3/things`, { headers: { Authorization: 'Bearer person' } })).status,
      );
    }
    return new Set(statuses);
  };

  it('Express lets requests pass, and then refuses them', async () => {
    const app = express().use(forExpress(gateway.decisionsUrl));
    app.get('/v3/things', (_request, response) => void response.send('ok'));
    const server = app.listen(0);
    await once(server, 'listening');
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    expect(await statusesAt(url)).toEqual(new Set([200, 429]));
    server.close();
  });

  it('Fastify lets requests pass without an answer, and says so', async () => {
    const app = Fastify();
    app.addHook('onRequest', forFastify('http://127.0.0.1:1'));
    app.get('/v3/things', async () => 'ok');
    const response = await app.inject('/v3/things');
    expect([response.statusCode, response.headers['service-ratelimit-mode']]).toEqual([200, 'degraded']);
    const counted = Fastify();
    counted.addHook('onRequest', forFastify(gateway.decisionsUrl));
    counted.get('/v3/things', async () => 'ok');
    const refused = await counted.inject('/v3/things');
    expect([refused.statusCode, refused.json().code]).toEqual([401, 'Unauthenticated']);
  });

  it('Python asks, and serves without an answer', async () => {
    const program = `
import sys
sys.path.insert(0, "examples/decide")
from weir import decide
print(decide("lonely", "GET", "/v3/things", "${gateway.decisionsUrl}")[:2], decide("service", "GET", "/", "http://127.0.0.1:1")[2])`;
    const { stdout } = await promisify(execFile)('python3', ['-c', program]);
    expect(stdout.trim()).toBe("(True, 200) {'Service-RateLimit-Mode': 'degraded'}");
  });
});

/** Each example reserves, does the work, and reports what it has cost: nothing if it failed. */
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { promisify } from 'node:util';
import express from 'express';
import fastify from 'fastify';
import { Hono } from 'hono';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { type Holding, openHolding } from '../fixtures/held-decisions.ts';

const example = (name: string) => import(`${process.cwd()}/examples/decide/${name}.mjs`);
const { weir: forExpress } = await example('express');
const { weir: forFastify } = await example('fastify');
const { weir: forHono } = await example('hono');
const { holding: forNext } = await example('next');

const HOLD = { hold: '60s' };
/** What GET /v3/things reserves. */
const RESERVED = 1;

/** How an application with the example answers `/v3/things?WHAT`: it costs 7, or fails, or does not say what it has cost. */
type Application = (what: 'costs' | 'fails' | 'silent', method?: 'GET' | 'HEAD') => Promise<Response>;

const request = (what: string, method = 'GET', url = 'http://app') =>
  new Request(`${url}/v3/things?${what}`, { method, headers: { Authorization: 'Bearer service' } });

const APPLICATIONS: Readonly<Record<string, (url: string) => Promise<Application>>> = {
  async Express(url) {
    const app = express()
      .use(forExpress(url, HOLD))
      .get('/v3/things', ({ query }, response) => {
        if ('costs' in query) response.locals.cost = 7;
        response.status('fails' in query ? 500 : 200).end('ok');
      });
    return overHttp(createServer(app));
  },
  async Fastify(url) {
    const app = fastify();
    app.addHook('onRequest', forFastify(url, HOLD));
    app.get('/v3/things', async (asked, reply) => {
      const query = asked.query as object;
      if ('costs' in query) Object.assign(asked, { cost: 7 });
      reply.code('fails' in query ? 500 : 200);
      return 'ok';
    });
    await app.ready();
    return overHttp(app.server);
  },
  async Hono(url) {
    const app = new Hono<{ Variables: { cost: number } }>()
      .use(forHono(url, HOLD))
      .get('/v3/things', (context) => {
        if (context.req.query('costs') !== undefined) context.set('cost', 7);
        if (context.req.query('fails') !== undefined) throw new Error('fails');
        return context.text('ok');
      });
    app.onError((_, context) => context.text('failed', 500));
    return async (what, method) => app.request(request(what, method));
  },
  async 'Next.js'(url) {
    const handler = forNext(url, '60s', async (asked: Request, held: { cost: number }) => {
      if (asked.url.endsWith('costs')) held.cost = 7;
      return new Response('ok', { status: asked.url.endsWith('fails') ? 500 : 200 });
    }) as (asked: Request) => Promise<Response>;
    return (what, method) => handler(request(what, method));
  },
};

async function statusOf(response: Response): Promise<number> {
  await response.text();
  return response.status;
}

async function overHttp(server: ReturnType<typeof createServer>): Promise<Application> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  return (what, method) => fetch(request(what, method, `http://127.0.0.1:${port}`));
}

// The examples give Weir a quarter of a second; a busy machine may need longer.
const timeout = AbortSignal.timeout.bind(AbortSignal);
vi.spyOn(AbortSignal, 'timeout').mockImplementation(() => timeout(60_000));

let weir: Holding;
beforeAll(async () => {
  weir = await openHolding({});
});
afterAll(() => weir.gateway.close());

/** The account of the token. */
const left = () => weir.left('acct_1', 'tokens');
const spent = async (before: number | undefined) => (before ?? 0) - ((await left()) ?? 0);

describe.each(Object.entries(APPLICATIONS))('the example for %s', (_, applicationAt) => {
  it.each([
    ['costs', 200, 7],
    ['fails', 500, 0],
    ['silent', 200, RESERVED],
  ] as const)('settles a request that %s', async (what, status, cost) => {
    const application = await applicationAt(weir.gateway.decisionsUrl);
    const before = await left();
    expect(await statusOf(await application(what))).toBe(status);
    await expect.poll(() => spent(before)).toBe(cost);
    // Two may be in flight: each of these has ended.
    for (let count = 0; count < 4; count++)
      await expect.poll(async () => statusOf(await application('fails'))).toBe(500);
  });

  it.each([
    ['has no body to read', 'HEAD'],
    ['nobody reads', 'GET'],
  ] as const)('settles a response that %s', async (_, method) => {
    const application = await applicationAt(weir.gateway.decisionsUrl);
    const before = await left();
    const response = await application('costs', method);
    expect(response.status).toBe(200);
    await response.body?.cancel();
    await expect.poll(() => spent(before)).toBe(7);
  });
});

it('the example for Next.js settles a request whose handler returns no response', async () => {
  const handler = forNext(weir.gateway.decisionsUrl, '60s', async () => undefined);
  const before = await left();
  await expect(handler(request('costs'))).rejects.toThrow();
  await expect.poll(() => spent(before)).toBe(0);
  // Two may be in flight: the third of these would be refused with a response.
  for (let count = 0; count < 4; count++) await expect(handler(request('costs'))).rejects.toThrow();
});

it('the example for Python settles work, and work that raises costs nothing', async () => {
  const before = await left();
  const program = `
import sys
sys.path.insert(0, "examples/decide")
import weir
url = "${weir.gateway.decisionsUrl}"
post = weir._post
weir._post = lambda url, body, timeout: post(url, body, 60)
with weir.held("service", "GET", "/v3/things", url=url) as request:
    print(request.allowed, request.cost)
    request.cost = 7
try:
    with weir.held("service", "GET", "/v3/things", url=url) as request:
        raise ValueError
except ValueError:
    pass
with weir.held("service", "GET", "/v3/things", url="http://127.0.0.1:1") as request:
    print(request.allowed, request.headers)`;
  const { stdout } = await promisify(execFile)('python3', ['-c', program]);
  expect(stdout.trim().split('\n')).toEqual([
    `True ${RESERVED}`,
    "True {'Service-RateLimit-Mode': 'degraded'}",
  ]);
  expect(await spent(before)).toBe(7);
});

it('the example for a job queue settles a job, and a job that fails costs nothing', async () => {
  vi.stubEnv('WEIR_URL', weir.gateway.decisionsUrl);
  vi.stubEnv('WEIR_DECISIONS_TOKEN', 'a-token-of-the-decisions-port');
  onTestFinished(() => void vi.unstubAllEnvs());
  const { whenAdmitted } = await example('worker');
  const before = await left();
  const question = { account: 'acct_1', method: 'GET', path: '/v3/things', cost: 20, ...HOLD };
  await whenAdmitted(question, (answer: { cost: number }) => {
    answer.cost = 7;
  });
  const failing = whenAdmitted(question, () => {
    throw new Error('the job failed');
  });
  await expect(failing).rejects.toThrow('the job failed');
  expect(await spent(before)).toBe(7);
});

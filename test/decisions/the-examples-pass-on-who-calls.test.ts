/** Handlers behind an example know the caller of the decision, and Weir knows the client's address and Account. */
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { type AddressInfo, createServer as createTcpServer } from 'node:net';
import { promisify } from 'node:util';
import { serve } from '@hono/node-server';
import express from 'express';
import fastify from 'fastify';
import { Hono } from 'hono';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { DECISIONS } from '../fixtures/decisions.ts';
import { startGateway, type TestGateway } from '../fixtures/gateway.ts';

const example = (name: string) => import(`${process.cwd()}/examples/decide/${name}.mjs`);
const { weir: forExpress } = await example('express');
const { weir: forFastify } = await example('fastify');
const { weir: forHono } = await example('hono');
const { weir: forNext } = await example('next');

const NOBODY = 'http://127.0.0.1:1';

/** Longer than any path in a question. */
const LONG_PATH = `/${'x'.repeat(17_000)}`;
const maxHeaderSize = 65_536;

type Fields = Readonly<Record<string, string>>;

/** An application behind the example answers with the fields and the body that its handler gets. */
type Application = (path: string, headers?: Fields, body?: string) => Promise<Response>;

const APPLICATIONS: Readonly<Record<string, (url: string) => Promise<Application>>> = {
  async Express(url) {
    const app = express().set('trust proxy', true).use(forExpress(url)).use(express.text());
    app.use(({ headers, body }, response) => void response.json({ headers, body }));
    return overHttp(createServer({ maxHeaderSize }, app));
  },
  async Fastify(url) {
    const app = fastify({ trustProxy: true, http: { maxHeaderSize } });
    app.addHook('onRequest', forFastify(url));
    app.all('/*', async ({ headers, body }) => ({ headers, body }));
    await app.ready();
    return overHttp(app.server);
  },
  async Hono(url) {
    const address = (context: { req: { header(name: string): string | undefined } }) =>
      context.req.header('X-Forwarded-For');
    const app = new Hono().use(forHono(url, { address }));
    app.onError((_, context) => context.text('failed', 500));
    app.all('*', async ({ req, json }) => json({ headers: req.header(), body: await req.text() }));
    return overHttp(serve({ fetch: app.fetch, port: 0, serverOptions: { maxHeaderSize } }) as Server);
  },
  async 'Next.js'(url) {
    const proxy = forNext(NextResponse, url) as (request: Request) => Promise<Response>;
    return async (path, headers = {}, body) => {
      const method = body === undefined ? 'GET' : 'POST';
      const request = new Request(`http://app${path}`, { method, headers, body: body ?? null });
      const answer = await proxy(request).catch(() => new Response(null, { status: 500 }));
      if (answer.headers.get('x-middleware-next') === null) return answer;
      const passed = { headers: await answer.json(), body: await request.text() };
      return Response.json(passed, answer);
    };
  },
};

/** As much of the class in `next/server` as the example uses. Next.js itself is too large. */
class NextResponse extends Response {
  static next({ request, headers }: { request: { headers: Headers }; headers: Fields }): Response {
    const passed = Object.fromEntries(request.headers);
    return Response.json(passed, { headers: { ...headers, 'x-middleware-next': '1' } });
  }
}

async function overHttp(server: Server): Promise<Application> {
  const url = await listen(server);
  return (path, headers = {}, body) =>
    fetch(url + path, { method: body === undefined ? 'GET' : 'POST', headers, body: body ?? null });
}

async function listen(server: ReturnType<typeof createTcpServer>): Promise<string> {
  if (!server.listening) await once(server.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => void server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const startBusy = () => listen(createServer((_, response) => response.writeHead(503).end('busy')));

const CUT_OFF = 'HTTP/1.1 503 Service Unavailable\r\nContent-Length: 9\r\n\r\nbusy';

/** Breaks off within the body of its answer. */
const startCutOff = () =>
  listen(
    createTcpServer((socket) => {
      socket.on('error', () => undefined).once('data', () => socket.end(CUT_OFF));
    }),
  );

/** Breaks off, and speaks no HTTP. */
const startGarbled = () => listen(createTcpServer((socket) => socket.end('nonsense\r\n\r\n')));

// The examples give Weir a quarter of a second; a busy machine may need longer.
const timeout = AbortSignal.timeout.bind(AbortSignal);
vi.spyOn(AbortSignal, 'timeout').mockImplementation(() => timeout(60_000));

let gateway: TestGateway;
/** Trusts other programs. */
let far: TestGateway;
beforeAll(async () => {
  const operations = { list: [{ method: 'GET', path: '/open', public: true, cost: 1 }] };
  gateway = await startGateway({ settings: { decisions: DECISIONS, operations } });
  far = await startGateway({ settings: { decisions: { ...DECISIONS, trusted: ['192.0.2.0/24'] } } });
});
afterAll(() => Promise.all([gateway.close(), far.close()]));

const FORGED = {
  'X-Account-Id': 'acct_forged',
  'X-Organization-Id': 'org_forged',
  'X-Principal-Id': 'forged',
  'X-Principal-Type': 'Person',
  'X-Client-Certificate-Subject': 'CN=forged',
};

/** The fields by which a handler knows its caller. */
const callerIn = ({ headers }: { headers: Fields }) =>
  Object.entries(headers)
    .filter(([name]) => /^x-(account|organization|principal|client|service)-/.test(name))
    .sort();

const passed = async (response: Response) => (await response.json()) as { headers: Fields; body: unknown };

describe.each(Object.entries(APPLICATIONS))('behind the example for %s', (name, applicationAt) => {
  it('a handler gets the caller of the decision, whatever the client claims, and the body', async () => {
    const application = await applicationAt(gateway.decisionsUrl);
    const named = { Authorization: 'Bearer organization', 'X-Service-Account': 'acct_2' };
    const seen = await passed(await application('/v3/things', { ...FORGED, ...named }, 'the body'));
    expect(callerIn(seen)).toEqual([
      ['x-account-id', 'acct_2'],
      ['x-organization-id', 'org_1'],
      ['x-principal-id', 'svc_org'],
      ['x-principal-type', 'ServiceAccount'],
      ['x-service-account', 'acct_2'],
    ]);
    expect(seen.body).toBe('the body');
    const foreign = await application('/v3/things', { ...named, 'X-Service-Account': 'acct_3' });
    expect([foreign.status, await foreign.json()]).toEqual([403, expect.objectContaining({ status: 403 })]);
  });

  it('a handler of a public operation gets no caller, and each address is counted alone', async () => {
    const application = await applicationAt(gateway.decisionsUrl);
    const place = Object.keys(APPLICATIONS).indexOf(name);
    const left: (string | undefined)[] = [];
    for (const host of [1, 2, 1]) {
      const claimed = { ...FORGED, 'X-Service-Account': 'acct_2' };
      const address = { 'X-Forwarded-For': `203.0.113.${10 * place + host}` };
      const response = await application('/open', { ...claimed, ...address });
      left.push(/"address-read";r=(\d+)/.exec(response.headers.get('RateLimit') ?? '')?.[1]);
      expect(callerIn(await passed(response))).toEqual([]);
    }
    expect(left).toEqual(['9', '9', '8']);
  });

  it.each([
    ['does not answer', async () => NOBODY],
    ['is too busy', startBusy],
    ['breaks off in a 503', startCutOff],
    ['breaks off', startGarbled],
  ])('a handler gets no caller if Weir %s', async (_, start) => {
    const application = await applicationAt(await start());
    const response = await application('/v3/things', FORGED);
    expect([response.status, response.headers.get('Service-RateLimit-Mode')]).toEqual([200, 'degraded']);
    expect(callerIn(await passed(response))).toEqual([]);
  });

  it('a request that Weir cannot read is refused', async () => {
    const application = await applicationAt(gateway.decisionsUrl);
    const response = await application(LONG_PATH, { Authorization: 'Bearer service' });
    expect([response.status, response.headers.get('Content-Type')]).toEqual([
      422,
      expect.stringMatching(/^application\/problem\+json/),
    ]);
    expect(await response.json()).toMatchObject({ errors: [{ field: 'path' }] });
  });

  it('no request is served if Weir does not let the program ask', async () => {
    const application = await applicationAt(far.decisionsUrl);
    expect((await application('/v3/things', { Authorization: 'Bearer service' })).status).toBe(500);
  });
});

it('the example for Python passes on who calls, and is served only where Weir does not answer', async () => {
  const program = `
import sys
sys.path.insert(0, "examples/decide")
import weir
post = weir._post
weir._post = lambda url, body, timeout: post(url, body, 60)
url = "${gateway.decisionsUrl}"
print(weir.decide("organization", "GET", "/v3/things", url, service_account="acct_2")[1])
print(weir.decide("organization", "GET", "/v3/things", url)[1])
print(weir.decide(None, "GET", "/v3/things", url)[1])
print(weir.decide("service", "GET", "/" + 17000 * "x", url)[:2])
for host in (1, 2, 1):
    print(weir.decide(None, "GET", "/open", url, address=f"203.0.113.10{host}")[2]["RateLimit"].split(";")[1])
with weir.held("organization", "GET", "/v3/things", url=url, service_account="acct_2") as request:
    print(request.account, request.organization, request.principal, request.principalType)
for url in ("${await startBusy()}", "${await startCutOff()}", "${await startGarbled()}"):
    print(weir.decide("service", "GET", "/v3/things", url)[:3])
try:
    weir.decide("service", "GET", "/v3/things", "${far.decisionsUrl}")
except RuntimeError as error:
    print(error)`;
  const { stdout } = await promisify(execFile)('python3', ['-c', program]);
  const uncounted = "(True, 200, {'Service-RateLimit-Mode': 'degraded'})";
  const untrusted =
    'Only the proxies in decisions.trusted may ask for decisions; this address is not one of them.';
  expect(stdout.trim().split('\n')).toEqual([
    ...['200', '403', '401', '(False, 422)'],
    ...['r=9', 'r=9', 'r=8'],
    'acct_2 org_1 svc_org ServiceAccount',
    ...[uncounted, uncounted, uncounted],
    `Weir does not let this program ask: ${untrusted}`,
  ]);
});

import { afterAll, beforeAll, expect, it } from 'vitest';
import { type PlainAnswer, sendPlain } from '../fixtures/decisions.ts';
import type { ListeningProcess } from '../fixtures/listening-process.ts';
import { startProxy } from '../fixtures/proxies.ts';
import { PROXIES } from '../fixtures/proxy-recipes.ts';
import { recipe, replaced, startRecipe } from '../fixtures/recipes.ts';
import { startUpstream, type TestUpstream } from '../fixtures/upstream.ts';
import { describeProxy } from './describe-proxy.ts';

const ALICE = { Authorization: 'Bearer alice-token' };
const BOB = { Authorization: 'Bearer bob-token' };

/** Fields of Weir that a client may try to have removed (RFC 9110 section 7.6.1). */
const IDENTITY = [
  'X-Account-Id',
  'X-Organization-Id',
  'X-Principal-Id',
  'X-Principal-Type',
  'X-Request-Id',
  'RateLimit',
  'RateLimit-Policy',
];

const PAGE = 'https://app.example.com';

/** What a service may send itself: it is the response of a proxy, or repeats the id of the request. */
const OWN_FIELDS = {
  'X-Request-Id': 'service',
  RateLimit: '"service";r=1',
  'RateLimit-Policy': '"service";q=1',
  'Service-RateLimit-Mode': 'degraded',
};

/** Proxies whose recipe passes WebSockets on. */
const PASS_WEBSOCKETS: ReadonlySet<string> = new Set(['HAProxy', 'Caddy', 'Traefik']);

/** Proxies whose recipe limits the bodies of requests. */
const LIMIT_BODIES: ReadonlySet<string> = new Set(['nginx', 'Caddy']);

/** A public operation, which is charged to the client's address. */
const OPEN = `paths:
  /open:
    get: { operationId: open, x-weir: { public: true }, responses: { '200': { description: Open. } } }
`;

for (const proxy of PROXIES) {
  describeProxy(proxy, () => {
    let upstream: TestUpstream;
    let weir: Awaited<ReturnType<typeof startRecipe>>;
    let running: ListeningProcess;
    beforeAll(async () => {
      upstream = await startUpstream((_, response) => response.writeHead(200, OWN_FIELDS).end('{}'));
      const page = `proxies/${proxy.name.toLowerCase()}`;
      const {
        'openapi.yaml': document = '',
        'limits.yaml': limits = '',
        'weir.yaml': settings = '',
      } = recipe(page);
      const files = {
        'weir.yaml': `${settings}\ncors: { origins: [${PAGE}] }\n`,
        'openapi.yaml': replaced(document, { 'paths:\n': OPEN }),
        'limits.yaml': replaced(limits, { 'defaults: {': 'defaults: { address-read: 10,' }),
      };
      weir = await startRecipe(page, { files });
      running = await startProxy(proxy, upstream.url, [weir.decisionsUrl ?? '']);
    });
    afterAll(async () => {
      await running.close();
      await weir.close();
      await upstream.close();
    });

    it('forwards an admitted request with the identity of its caller', async () => {
      const answer = await sendPlain(running.url, 'GET', '/items?page=1', {
        ...ALICE,
        'X-Request-Id': 'mine.1',
      });
      expect(answer.status).toBe(200);
      if (proxy.showsLimits)
        expect(answer.headers).toMatchObject({
          'x-request-id': 'mine.1',
          ratelimit: expect.stringMatching(/^"account-read";r=19;t=60, "organization-read";r=99;t=60$/),
          'ratelimit-policy': expect.stringContaining('"account-write";q=10;w=60'),
        });
      expect(upstream.seen.at(-1)).toMatchObject({
        method: 'GET',
        url: '/items?page=1',
        headers: {
          'x-account-id': 'acct_a',
          'x-organization-id': 'org_a',
          'x-principal-id': 'alice',
          'x-principal-type': 'ServiceAccount',
          'x-request-id': 'mine.1',
        },
      });
    });

    it("gives the service the client's request id, or Weir's where that is not valid", async () => {
      for (const id of [undefined, 'not valid', 'mine.3']) {
        const answer = await sendPlain(running.url, 'GET', '/items', {
          ...ALICE,
          ...(id === undefined ? {} : { 'X-Request-Id': id }),
        });
        const forwarded = upstream.seen.at(-1)?.headers['x-request-id'];
        expect(forwarded).toMatch(id === 'mine.3' ? /^mine\.3$/ : /^[0-9a-f-]{36}$/);
        if (proxy.showsLimits) expect(answer.headers['x-request-id']).toBe(forwarded);
      }
    });

    it('reports the address of the client, whatever the client writes', async () => {
      const headers = (address: string) => ({ 'X-Forwarded-For': address, Forwarded: `for=${address}` });
      for (let count = 0; count < 10; count++) {
        const { status } = await sendPlain(running.url, 'GET', '/open', headers(`203.0.113.${count}`));
        expect(status).toBe(200);
        expect(upstream.seen.at(-1)?.headers['x-forwarded-for']).not.toMatch(/203\.0\.113\.\d+$/);
      }
      expect((await sendPlain(running.url, 'GET', '/open', headers('203.0.113.99'))).status).toBe(429);
    });

    it("replaces the client's own identity fields, and removes those that the caller does not have", async () => {
      const forged = {
        'X-Account-Id': 'evil',
        'X-Organization-Id': 'evil',
        'X-Principal-Type': 'Person',
        'X-Client-Certificate-Subject': 'evil',
      };
      expect((await sendPlain(running.url, 'GET', '/items', { ...BOB, ...forged })).status).toBe(200);
      expect(upstream.seen.at(-1)?.headers).toMatchObject({
        'x-account-id': 'acct_b',
        'x-principal-type': 'ServiceAccount',
      });
      expect(upstream.seen.at(-1)?.headers).not.toHaveProperty('x-organization-id');
      await sendPlain(running.url, 'OPTIONS', '/items', forged);
      expect(upstream.seen.at(-1)?.method).toBe('OPTIONS');
      expect(JSON.stringify(upstream.seen.at(-1)?.headers)).not.toMatch(/evil|Person/);
    });

    it.each([
      ['in one line', [IDENTITY.join(', ')]],
      ['in a line each', IDENTITY],
      ['in lower case, behind keep-alive', [`keep-alive,${IDENTITY.join(',').toLowerCase()}`]],
      ['in upper case, with empty options', [` , ,${IDENTITY.join(' ,\t').toUpperCase()},,`]],
      [
        'in two lines, before close',
        [IDENTITY.slice(0, 3).join(','), `${IDENTITY.slice(2).join(',')},close`],
      ],
      ['with an upgrade', ['Upgrade', ...IDENTITY]],
    ])('removes no field of Weir that the client lists in Connection, %s', async (_, lines) => {
      const answer = await sendPlain(running.url, 'GET', '/items', {
        ...ALICE,
        Connection: lines,
        ...(lines[0] === 'Upgrade' ? { Upgrade: 'h2c' } : {}),
        'X-Request-Id': 'mine.4',
        'X-Principal-Type': 'Person',
      });
      expect(answer.status).toBe(200);
      const forwarded = upstream.seen.at(-1)?.headers;
      expect(forwarded).toMatchObject({
        'x-account-id': 'acct_a',
        'x-organization-id': 'org_a',
        'x-principal-id': 'alice',
        'x-principal-type': 'ServiceAccount',
        'x-request-id': expect.any(String),
      });
      // A service that is a proxy itself would remove what Connection lists.
      expect(`${forwarded?.connection}`).not.toMatch(/x-/i);
      if (proxy.showsLimits)
        expect(answer.headers).toMatchObject({
          ratelimit: expect.stringContaining('"account-read";r='),
          'ratelimit-policy': expect.stringContaining('"account-read";q='),
          'x-request-id': forwarded?.['x-request-id'],
        });
    });

    it.each([
      [['h2c']],
      [['H2C']],
      [['foo, h2c']],
      [['websocket, h2c']],
      [['h2c', 'websocket']],
      [['websocket', 'h2c']],
    ])('opens no tunnel in which Weir is not asked: Upgrade %j', async (protocols) => {
      const before = upstream.seen.length;
      const { status } = await sendPlain(running.url, 'GET', '/items', {
        ...BOB,
        Connection: 'Upgrade, HTTP2-Settings',
        'HTTP2-Settings': 'AAMAAABkAAQAAP__',
        'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ==',
        'Sec-WebSocket-Version': '13',
        Upgrade: protocols,
      });
      const forwarded = upstream.seen.slice(before);
      // Envoy refuses what it does not upgrade.
      expect([status, forwarded.length]).toEqual(status === 403 ? [403, 0] : [200, 1]);
      for (const { headers } of forwarded) expect([undefined, 'websocket']).toContain(headers.upgrade);
    });

    it.runIf(PASS_WEBSOCKETS.has(proxy.name))('passes the handshake of a WebSocket on', async () => {
      await sendPlain(running.url, 'GET', '/items', {
        ...BOB,
        Connection: 'keep-alive, Upgrade',
        'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ==',
        'Sec-WebSocket-Version': '13',
        Upgrade: 'websocket',
      });
      expect(upstream.seen.at(-1)?.headers).toMatchObject({
        upgrade: 'websocket',
        connection: expect.stringMatching(/^upgrade$/i),
        'x-account-id': 'acct_b',
      });
    });

    it('forwards the path that was decided about where the client sends a whole URL', async () => {
      const { host } = new URL(running.url);
      const targets = [`http://${host}/items?whole`, 'http:///items?whole', `foo://${host}/items?whole`];
      const before = upstream.seen.length;
      for (const target of targets) await sendPlain(running.url, 'GET', target, BOB);
      const urls = upstream.seen.slice(before).map(({ url }) => url);
      expect(new Set(urls)).toEqual(new Set(['/items?whole']));
    });

    it('does not blame Weir for headers that are too long', async () => {
      const long = Object.fromEntries(['X-A', 'X-B', 'X-C', 'X-D'].map((name) => [name, 'v'.repeat(5_000)]));
      const { status } = await sendPlain(running.url, 'GET', '/items', { ...BOB, ...long });
      expect([400, 431]).toContain(status);
    });

    it('does not let the client choose the operation', async () => {
      const cheap = { 'X-Forwarded-Method': 'GET', 'X-Forwarded-Uri': '/items' };
      const answer = await sendPlain(running.url, 'POST', '/items', { ...BOB, ...cheap });
      expect(answer.status).toBe(200);
      if (proxy.showsLimits) expect(answer.headers.ratelimit).toContain('"account-write";r=5;');
    });

    it.each([
      'X-Original-URI',
      'X-Original-URL',
      'X-Original-Method',
      'X-Rewrite-URL',
      'X-Forwarded-Uri',
      'X_Account_Id',
      'Proxy',
    ])('forwards no %s of the client that the service could misread', async (name) => {
      const before = upstream.seen.length;
      const { status } = await sendPlain(running.url, 'GET', '/items', { ...BOB, [name]: 'misread' });
      const forwarded = upstream.seen.slice(before);
      expect([status, forwarded.length]).toEqual(status === 400 ? [400, 0] : [200, 1]);
      if (name !== 'X-Forwarded-Uri') expect(JSON.stringify(forwarded)).not.toContain('misread');
    });

    it.each([
      ['without a token', 401, 'GET', '/items', {}],
      ['for a foreign Account', 403, 'GET', '/items', { ...BOB, 'X-Service-Account': 'acct_a' }],
      ['with an ambiguous path', 400, 'GET', '/items;x=1', BOB],
      ['with an overriding method', 400, 'POST', '/items', { ...BOB, 'X-HTTP-Method-Override': 'GET' }],
      ['beyond the limit', 429, 'POST', '/items', ALICE],
    ])('sends the response of the gateway to a request %s', async (_, status, method, target, headers) => {
      if (status === 429)
        for (let count = 0; count < 2; count++) await sendPlain(running.url, method, target, ALICE);
      const named = { ...headers, 'X-Request-Id': 'mine.2', Origin: PAGE };
      const before = upstream.seen.length;
      const own = await sendPlain(weir.url, method, target, named);
      const answer = await sendPlain(running.url, method, target, named);
      expect([own.status, answer.status]).toEqual([status, status]);
      // Some proxies write names of fields in another case.
      const shown = ({ body }: PlainAnswer) => JSON.parse(body.toLowerCase().replace(/ in \d+ s\./, ''));
      expect(shown(answer)).toEqual(shown(own));
      const fields = [
        'content-type',
        'x-request-id',
        'www-authenticate',
        'ratelimit-policy',
        'cache-control',
        'access-control-allow-origin',
        'access-control-expose-headers',
        'vary',
      ];
      expect(own.headers['access-control-allow-origin']).toBe(PAGE);
      for (const field of fields) expect([field, answer.headers[field]]).toEqual([field, own.headers[field]]);
      expect(answer.headers.ratelimit?.toString().replaceAll(/t=\d+/g, '')).toBe(
        own.headers.ratelimit?.toString().replaceAll(/t=\d+/g, ''),
      );
      expect('retry-after' in answer.headers).toBe(status === 429);
      expect(upstream.seen).toHaveLength(before);
    });

    it('sends a body to the service, and not to Weir', async () => {
      const headers = { ...BOB, 'Content-Type': 'text/plain' };
      const body = 'x'.repeat(2_000_000);
      const response = await fetch(`${running.url}/items`, { method: 'PUT', headers, body });
      expect(response.status).toBe(200);
      expect(upstream.seen.at(-1)?.headers['content-length']).toBe('2000000');
    });

    it('sends a body in chunks to the service, and not to Weir', async () => {
      const body = new Blob(['x'.repeat(10_000)]).stream();
      const response = await fetch(`${running.url}/items`, {
        method: 'PATCH',
        headers: BOB,
        body,
        duplex: 'half',
      });
      expect([response.status, await response.text()]).toEqual([200, expect.anything()]);
    });

    it.runIf(LIMIT_BODIES.has(proxy.name))('refuses a body that is too large, and asks nobody', async () => {
      const before = upstream.seen.length;
      const headers = { ...BOB, 'Content-Length': `${256 * 1024 ** 2 + 1}` };
      const { status, headers: answered } = await sendPlain(running.url, 'PUT', '/items', headers);
      expect([status, answered.ratelimit]).toEqual([413, undefined]);
      expect(upstream.seen).toHaveLength(before);
    });

    it('answers HEAD as GET', async () => {
      const admitted = await sendPlain(running.url, 'HEAD', '/items', BOB);
      expect(admitted.status).toBe(200);
      if (proxy.showsLimits) expect(admitted.headers.ratelimit).toContain('account-read');
      expect((await sendPlain(running.url, 'HEAD', '/items')).status).toBe(401);
    });

    it('refuses every request while Weir does not answer', async () => {
      const before = upstream.seen.length;
      await weir.close();
      const { status } = await sendPlain(running.url, 'GET', '/items', BOB);
      expect(status).toBe(proxy.reportsOutage ? 503 : 500);
      expect(upstream.seen).toHaveLength(before);
    });
  });
}

import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { DECISIONS, PROTOCOLS } from '../fixtures/decisions.ts';
import { startGateway, type TestGateway } from '../fixtures/gateway.ts';

/** Nothing listens there. */
const DEAD_STORE = { kind: 'redis', url: 'redis://127.0.0.1:1' };

/** They are shared, because a gateway waits for its store when it starts. */
let degrading: TestGateway;
let rejecting: TestGateway;
beforeAll(async () => {
  [degrading, rejecting] = await Promise.all([
    startGateway({ store: DEAD_STORE }),
    startGateway({
      store: { ...DEAD_STORE, onStoreFailure: 'reject' },
      settings: { decisions: DECISIONS },
    }),
  ]);
});
afterAll(() => Promise.all([degrading.close(), rejecting.close()]));

it('by default an uncounted request is served, with a header', async () => {
  const answer = await degrading.send('GET', '/v3/things');
  expect(answer.status).toBe(200);
  expect(answer.headers.get('Service-RateLimit-Mode')).toBe('degraded');
  expect(answer.headers.get('RateLimit')).toBeNull();
  expect(answer.headers.get('RateLimit-Policy')).toContain('"account-read";q=20;w=60');
});

it.each([
  { status: 422, what: 'has invalid parameters', path: '/v3/lists?page[size]=101' },
  { status: 503, what: 'the upstream leaves unanswered', path: '/v3/things' },
])(
  'an uncounted request that $what is degraded too: its $status has the header',
  async ({ status, path }) => {
    const gateway = status === 503 ? await startGateway({ store: DEAD_STORE }) : degrading;
    if (status === 503) {
      onTestFinished(() => gateway.close());
      await gateway.upstream.close();
    }
    const answer = await gateway.send('GET', path);
    expect(answer.status).toBe(status);
    expect(answer.headers.get('Service-RateLimit-Mode')).toBe('degraded');
    expect(answer.headers.get('RateLimit')).toBeNull();
    expect(answer.headers.get('RateLimit-Policy')).toContain('"account-read";q=20;w=60');
  },
);

it('with onStoreFailure: reject it is a 503 that never reaches the upstream, and no 429', async () => {
  const answer = await rejecting.send('GET', '/v3/things');
  expect(answer.status).toBe(503);
  expect(await answer.json()).toMatchObject({ code: 'ServiceUnavailable' });
  for (const name of ['Service-RateLimit-Mode', 'RateLimit', 'Retry-After'])
    expect(answer.headers.get(name)).toBeNull();
  expect(rejecting.upstream.seen).toHaveLength(0);
});

it.each([
  ['ext-authz', 503],
  ['forward-auth', 503],
  ['auth-request', 403],
])(
  'with onStoreFailure: reject a proxy with %s gets it as a %i, which no header calls served',
  async (protocol, status) => {
    const headers = { Authorization: 'Bearer service' };
    const answer = await PROTOCOLS[protocol]?.(rejecting.decisionsUrl, 'GET', '/v3/things', headers);
    expect(answer?.status).toBe(status);
    expect(answer?.headers['x-weir-status']).toBe(status === 503 ? undefined : '503');
    expect(answer?.headers).not.toHaveProperty('service-ratelimit-mode');
  },
);

describe('with onStoreFailure: share', () => {
  let gateway: TestGateway;
  afterEach(() => gateway.close());

  const SHARE = { ...DEAD_STORE, onStoreFailure: 'share', expectedReplicas: 2 };
  const send = () => gateway.send('GET', '/v3/things', { token: 'lonely' });

  it('this replica serves its part of the limit uncounted, and refuses the rest with a 429 that says so', async () => {
    gateway = await startGateway({ store: SHARE, settings: { log: { level: 'info' } } });
    for (let sent = 0; sent < 10; sent++) {
      const answer = await send();
      expect(answer.status).toBe(200);
      expect(answer.headers.get('Service-RateLimit-Mode')).toBe('degraded');
      expect(answer.headers.get('RateLimit')).toBeNull();
    }
    const refused = await send();
    expect(refused.status).toBe(429);
    expect(refused.headers.get('Service-RateLimit-Mode')).toBe('degraded');
    expect(refused.headers.get('RateLimit')).toBeNull();
    expect(refused.headers.get('RateLimit-Policy')).toContain('"account-read";q=20;w=60');
    const retryAfter = Number(refused.headers.get('Retry-After'));
    expect(retryAfter).toBeGreaterThanOrEqual(1);
    expect(retryAfter).toBeLessThanOrEqual(60);
    const body = (await refused.json()) as { readonly detail: string };
    expect(body).toMatchObject({
      code: 'RateLimitExceeded',
      extensions: { bucket: 'account-read', limit: 20, windowSeconds: 60, costPoints: 1 },
    });
    expect(body.detail).toMatch(
      /^Account acct_3 has used this replica's part of its 20 points per minute for reads; /,
    );
    expect(gateway.upstream.seen).toHaveLength(10);

    const metrics = await gateway.metrics();
    expect(metrics).toMatch(/^weir_degraded_total\{reason="disconnected"\} 10$/m);
    expect(metrics).toMatch(/^weir_degraded_denied_total\{reason="disconnected"\} 1$/m);
    expect(metrics).toMatch(/^weir_share_replicas 2$/m);
    const line = gateway.lines.find((one) => one.includes('"outcome":"denied"'));
    expect(JSON.parse(line ?? '')).toMatchObject({ status: 429, limit: 20, degraded: 'disconnected' });
  });

  it('the port for decisions decides as the port for clients, and a peek spends nothing', async () => {
    gateway = await startGateway({
      store: SHARE,
      settings: { decisions: { host: '127.0.0.1', port: 0 } },
    });
    const ask = async (peek: boolean) => {
      const question = { token: 'lonely', method: 'GET', path: '/v3/things', peek };
      const answer = await fetch(`${gateway.decisionsUrl}/decide`, {
        method: 'POST',
        body: JSON.stringify(question),
      });
      return (await answer.json()) as { readonly headers: object };
    };
    for (let asked = 0; asked < 30; asked++)
      expect(await ask(true)).toMatchObject({ allowed: true, degraded: true, buckets: [] });
    for (let sent = 0; sent < 10; sent++) await send();
    const refused = {
      allowed: false,
      status: 429,
      degraded: true,
      buckets: [],
      headers: { 'Service-RateLimit-Mode': 'degraded' },
    };
    expect(await ask(true)).toMatchObject(refused);
    expect(await ask(false)).toMatchObject(refused);
    expect((await ask(true)).headers).not.toHaveProperty('RateLimit');
    const { hostname, port } = new URL(gateway.decisionsUrl);
    const proxy = await fetch(`http://${hostname}:${port}/ext-authz/v3/things`, {
      headers: { Authorization: 'Bearer lonely' },
    });
    expect([proxy.status, proxy.headers.get('Service-RateLimit-Mode')]).toEqual([429, 'degraded']);
  });
});

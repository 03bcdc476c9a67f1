import { afterEach, expect, it } from 'vitest';
import { startGateway, type TestGateway } from '../fixtures/gateway.ts';

/** Nothing listens there. */
const DEAD_STORE = { kind: 'redis', url: 'redis://127.0.0.1:1' };

let gateway: TestGateway;
afterEach(() => gateway.close());

it('by default an uncounted request is served, with a header', async () => {
  gateway = await startGateway({ store: DEAD_STORE });
  const answer = await gateway.send('GET', '/v3/things');
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
    gateway = await startGateway({ store: DEAD_STORE });
    if (status === 503) await gateway.upstream.close();
    const answer = await gateway.send('GET', path);
    expect(answer.status).toBe(status);
    expect(answer.headers.get('Service-RateLimit-Mode')).toBe('degraded');
    expect(answer.headers.get('RateLimit')).toBeNull();
    expect(answer.headers.get('RateLimit-Policy')).toContain('"account-read";q=20;w=60');
  },
);

it('with onStoreFailure: reject it is a 503 that never reaches the upstream, and no 429', async () => {
  gateway = await startGateway({ store: { ...DEAD_STORE, onStoreFailure: 'reject' } });
  const answer = await gateway.send('GET', '/v3/things');
  expect(answer.status).toBe(503);
  expect(await answer.json()).toMatchObject({ code: 'ServiceUnavailable' });
  for (const name of ['Service-RateLimit-Mode', 'RateLimit', 'Retry-After'])
    expect(answer.headers.get(name)).toBeNull();
  expect(gateway.upstream.seen).toHaveLength(0);
});

import { Hono } from 'hono';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { DECISIONS } from '../fixtures/decisions.ts';
import { startGateway, type TestGateway } from '../fixtures/gateway.ts';

const { weir: forHono } = await import(`${process.cwd()}/examples/decide/hono.mjs`);
const { weir: forNext } = await import(`${process.cwd()}/examples/decide/next.mjs`);

const NOBODY = 'http://127.0.0.1:1';

/** As much of the class in `next/server` as the example uses, with the field by which Next.js goes on. Next.js itself is too large. */
class NextResponse extends Response {
  static next({ headers }: { headers: Record<string, string> }): NextResponse {
    return new NextResponse(null, { headers: { ...headers, 'x-middleware-next': '1' } });
  }
}

/** How an application with the middleware answers. */
type Application = (path: string, token?: string) => Promise<Response>;

const authorized = (token?: string) => (token === undefined ? {} : { Authorization: `Bearer ${token}` });

const APPLICATIONS: Readonly<Record<string, (url: string) => Application>> = {
  Hono(url) {
    const app = new Hono().use(forHono(url)).get('/v3/things', (context) => context.text('ok'));
    return async (path, token) => app.request(path, { headers: authorized(token) });
  },
  'Next.js'(url) {
    const proxy = forNext(NextResponse, url) as (request: Request) => Promise<Response>;
    return (path, token) => proxy(new Request(`http://app${path}`, { headers: authorized(token) }));
  },
};

// The examples give Weir a quarter of a second; a busy machine may need longer.
const timeout = AbortSignal.timeout.bind(AbortSignal);
vi.spyOn(AbortSignal, 'timeout').mockImplementation(() => timeout(60_000));

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway({ settings: { decisions: DECISIONS } });
});
afterAll(() => gateway.close());

describe.each(Object.entries(APPLICATIONS))('the example for %s', (name, applicationAt) => {
  const token = name === 'Hono' ? 'lonely' : 'other';

  it('lets requests pass with what is left, and then refuses them', async () => {
    const application = applicationAt(gateway.decisionsUrl);
    const first = await application('/v3/things?page=1', token);
    expect([first.status, first.headers.get('RateLimit')]).toEqual([200, expect.stringMatching(/;r=19;/)]);
    expect(first.headers.get('x-middleware-next') ?? (await first.text())).toMatch(/^(1|ok)$/);
    let last = first;
    for (let count = 0; count < 25 && last.status === 200; count++)
      last = await application('/v3/things', token);
    expect([last.status, last.headers.get('Content-Type')]).toEqual([429, 'application/problem+json']);
    expect(Number(last.headers.get('Retry-After'))).toBeGreaterThan(0);
    expect(await last.json()).toMatchObject({ code: 'RateLimitExceeded' });
  });

  it('refuses a request without a token', async () => {
    const { status, headers } = await applicationAt(gateway.decisionsUrl)('/v3/things');
    expect([status, headers.get('WWW-Authenticate')]).toEqual([401, expect.stringContaining('Bearer')]);
  });

  it('lets requests pass without an answer, and says so', async () => {
    const { status, headers } = await applicationAt(NOBODY)('/v3/things', token);
    expect([status, headers.get('Service-RateLimit-Mode')]).toEqual([200, 'degraded']);
  });
});

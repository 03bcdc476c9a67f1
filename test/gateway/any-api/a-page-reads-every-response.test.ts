import type { RequestListener } from 'node:http';
import type { Browser } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { startChromium } from '../../fixtures/chromium.ts';
import { startGateway, type TestGateway } from '../../fixtures/gateway.ts';
import { startUpstream, type TestUpstream } from '../../fixtures/upstream.ts';

const PAGE: RequestListener = (_request, response) => {
  response.setHeader('Content-Type', 'text/html');
  response.end('<!doctype html><title>app</title>');
};

/** An upstream that knows nothing of CORS, except that it answers OPTIONS like one that does. */
const UPSTREAM: RequestListener = (request, response) => {
  if (request.method === 'OPTIONS') {
    response.setHeader('Access-Control-Allow-Origin', request.headers.origin ?? '');
    response.setHeader('Access-Control-Allow-Headers', 'authorization, content-type');
    response.setHeader('Access-Control-Allow-Methods', 'POST');
  }
  response.end('{}');
};

let browser: Browser;
let app: TestUpstream;
let gateway: TestGateway;
beforeAll(async () => {
  [browser, app] = await Promise.all([startChromium(), startUpstream(PAGE)]);
});
afterAll(() => Promise.all([browser.close(), app.close()]));
afterEach(() => gateway.close());

async function start(cors: Record<string, unknown>, answer = UPSTREAM): Promise<void> {
  const limits = { defaults: { 'account-read': 14, 'account-write': 14 } };
  gateway = await startGateway({ upstream: await startUpstream(answer), settings: { cors }, limits });
}

const NAMES = ['RateLimit', 'RateLimit-Policy', 'Retry-After', 'X-Request-Id', 'X-Private'];

/** What a page at the app's origin learns of each response: its status and the headers that it can read, or the error. */
async function seenByPage(method: string, tokens: readonly string[]): Promise<readonly string[]> {
  const page = await browser.newPage();
  try {
    await page.goto(app.url);
    return await page.evaluate(
      async ({ url, method: used, tokens: sent, names }) => {
        const seen: string[] = [];
        for (const token of sent) {
          try {
            const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' };
            const response = await fetch(url, { method: used, headers });
            seen.push([response.status, ...names.filter((name) => response.headers.has(name))].join(' '));
          } catch (error) {
            seen.push(`${error}`);
          }
        }
        return seen;
      },
      { url: `${gateway.url}/v3/reports`, method, tokens, names: NAMES },
    );
  } finally {
    await page.close();
  }
}

const CALLS = ['unknown', 'lonely', 'lonely', 'lonely'];
const READABLE = [
  '401 X-Request-Id',
  '200 RateLimit RateLimit-Policy X-Request-Id',
  '200 RateLimit RateLimit-Policy X-Request-Id',
  '429 RateLimit RateLimit-Policy Retry-After X-Request-Id',
];
const UNREADABLE = CALLS.map(() => 'TypeError: Failed to fetch');

describe('in Chromium, a page', () => {
  it.each([
    ['its origin', 'answer'],
    ['its origin', 'forward'],
    ['*', 'answer'],
  ])('whose gateway allows %s, with preflight: %s, reads each response', async (allowed, preflight) => {
    await start({ origins: [allowed === '*' ? '*' : app.url], preflight });
    expect(await seenByPage('POST', CALLS)).toEqual(READABLE);
    const preflights = gateway.upstream.seen.filter(({ method }) => method === 'OPTIONS').length;
    expect(preflights > 0).toBe(preflight === 'forward');
  });

  it('of another origin reads none', async () => {
    await start({ origins: ['https://app.example.com'] });
    expect(await seenByPage('POST', CALLS)).toEqual(UNREADABLE);
    expect(gateway.upstream.seen).toEqual([]);
  });

  it("reads the headers that the upstream's own CORS exposes as well", async () => {
    await start({ origins: [app.url] }, (request, response) => {
      response.setHeader('Access-Control-Allow-Origin', request.headers.origin ?? '');
      response.setHeader('Access-Control-Expose-Headers', 'X-Private');
      response.setHeader('X-Private', '1');
      response.end('{}');
    });
    expect(await seenByPage('GET', ['lonely'])).toEqual([
      '200 RateLimit RateLimit-Policy X-Request-Id X-Private',
    ]);
  });
});

describe('without a browser', () => {
  const ORIGIN = 'https://app.example.com';

  it('no permission is added by default, or for another origin', async () => {
    for (const cors of [{ origins: [] as string[] }, { origins: ['https://other.example.com'] }]) {
      if (cors.origins.length > 0) await gateway.close();
      await start(cors);
      const { headers } = await gateway.send('GET', '/v3/things', { headers: { Origin: ORIGIN } });
      expect([...headers.keys()].filter((name) => /^access-control/.test(name))).toEqual([]);
    }
  });

  it('a preflight is answered with what it asks for, costs nothing and varies by origin', async () => {
    await start({ origins: [ORIGIN], maxAgeSeconds: 5 });
    const asked = {
      Origin: ORIGIN,
      'Access-Control-Request-Method': 'PATCH',
      'Access-Control-Request-Headers': 'x-a, x-b',
    };
    const { status, headers } = await gateway.send('OPTIONS', '/v3/things', { token: null, headers: asked });
    expect(status).toBe(204);
    expect(headers.get('Access-Control-Allow-Origin')).toBe(ORIGIN);
    expect(headers.get('Access-Control-Allow-Methods')).toContain('PATCH');
    expect(headers.get('Access-Control-Allow-Headers')).toBe('x-a, x-b');
    expect(headers.get('Access-Control-Max-Age')).toBe('5');
    expect(headers.get('Vary')).toContain('Origin');
    expect(headers.has('RateLimit')).toBe(false);
    expect(gateway.upstream.seen).toEqual([]);
  });

  it('an OPTIONS request that is no preflight reaches the upstream', async () => {
    await start({ origins: [ORIGIN] });
    expect((await gateway.send('OPTIONS', '/v3/things', { token: null })).status).toBe(200);
    expect(gateway.upstream.seen).toHaveLength(1);
  });
});

import type { ServerResponse } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { startGateway, type TestGateway } from '../fixtures/gateway.ts';
import { uniquePrefix } from '../fixtures/redis-url.ts';
import { STORES } from '../fixtures/stores.ts';
import { type Handshake, handshake, startTunnelUpstream } from '../fixtures/tunnels.ts';
import { startUpstream } from '../fixtures/upstream.ts';

const SETTINGS = {
  operations: {
    list: [
      { method: 'GET', path: '/v3/reports', id: 'reports' },
      { method: 'POST', path: '/v3/reports', id: 'makeReport' },
      { method: 'GET', path: '/v3/feed', id: 'feed' },
      { method: 'GET', path: '/v3/other', id: 'other' },
    ],
  },
};
const IN_FLIGHT = { per: 'account', concurrent: 2, operations: ['* /v3/reports', '* /v3/feed'] };
const SOON = { timeout: 10_000, interval: 10 };

/** An upstream that answers when the test says. */
async function startPatient() {
  const waiting: ServerResponse[] = [];
  const upstream = await startUpstream((request, response) => {
    request.resume();
    if (request.url === '/v3/other') response.end();
    else waiting.push(response);
  });
  return { upstream, waiting };
}

async function start(options: Parameters<typeof startGateway>[0] = {}): Promise<TestGateway> {
  const gateway = await startGateway({
    limits: { limits: { 'in-flight': IN_FLIGHT } },
    ...options,
    settings: { ...SETTINGS, ...options?.settings },
  });
  onTestFinished(() => gateway.close());
  return gateway;
}

/** Sends requests one by one until so many are in flight, which has to happen, and then that the next is refused. */
async function untilFull(gateway: TestGateway, waiting: ServerResponse[], limit = 2): Promise<void> {
  const before = waiting.length;
  for (let held = 0; held < limit; ) {
    const asked = gateway.send('GET', '/v3/reports');
    const next = held + 1;
    const arrived = vi.waitFor(() => {
      expect(waiting).toHaveLength(before + next);
      return undefined;
    }, SOON);
    const refused = await Promise.race([asked, arrived]);
    if (refused === undefined) held += 1;
    else expect(refused.status).toBe(429);
    void Promise.allSettled([asked, arrived]);
  }
  expect((await gateway.send('GET', '/v3/reports')).status).toBe(429);
}

/** A WebSocket, as soon as it is not refused. */
async function untilOpen(gateway: TestGateway): Promise<Handshake> {
  for (;;) {
    const answer = await handshake(gateway.url, '/v3/feed', ['Authorization: Bearer service']);
    if (answer.status === 101) return answer;
    expect(answer.status).toBe(429);
  }
}

it('decisions for other proxies do not count what is in flight, because nobody reports its end', async () => {
  const gateway = await start({
    settings: { decisions: { port: 0, trusted: ['127.0.0.0/8'] } },
    limits: { limits: { 'in-flight': { ...IN_FLIGHT, concurrent: 1 } } },
  });
  const decide = async (more = {}) => {
    const question = { token: 'service', method: 'GET', path: '/v3/reports', ...more };
    const body = JSON.stringify(question);
    const headers = { 'Content-Type': 'application/json' };
    const answer = await fetch(`${gateway.decisionsUrl}/decide`, { method: 'POST', headers, body });
    return (await answer.json()) as { readonly allowed: boolean; readonly limits: unknown };
  };
  for (let asked = 0; asked < 3; asked++) expect((await decide()).allowed).toBe(true);
  expect(JSON.stringify(await decide())).not.toContain('in-flight');
});

describe.each(STORES)('with the $kind store', ({ store: settingsOf }) => {
  const store = () => ({ ...settingsOf(), keyPrefix: uniquePrefix() });

  it('no more requests than the limit are in flight, and headers and the 429 say so', async () => {
    const { upstream, waiting } = await startPatient();
    const gateway = await start({ store: store(), upstream });
    const asked = [gateway.send('GET', '/v3/reports'), gateway.send('POST', '/v3/reports')];
    await vi.waitFor(() => expect(waiting).toHaveLength(2), SOON);
    const refused = await gateway.send('GET', '/v3/reports');
    expect(refused.status).toBe(429);
    expect(refused.headers.get('Retry-After')).toBe('1');
    expect(refused.headers.get('RateLimit-Policy')).toMatch(/, "in-flight";q=2;qu="concurrent-requests"$/);
    expect(refused.headers.get('RateLimit')).toMatch(/"in-flight";r=0$/);
    expect(await refused.json()).toMatchObject({
      detail:
        'Account acct_1 may have 2 requests in progress at the same time for in-flight; try again when one has ended.',
      extensions: { bucket: 'in-flight', limit: 2, windowSeconds: 0, costPoints: 1 },
    });
    // The refusal has spent nothing, and what the limit does not count is not affected.
    const other = await gateway.send('GET', '/v3/other');
    expect(other.headers.get('RateLimit')).toMatch(
      /^"account-read";r=18;t=\d+, "organization-read";r=28;t=\d+$/,
    );
    expect(other.headers.get('RateLimit-Policy')).not.toContain('in-flight');
    const admin = async (path: string) => (await fetch(gateway.adminUrl + path)).text();
    expect(JSON.parse(await admin('/usage/accounts/acct_1')).buckets).toContainEqual(
      expect.objectContaining({
        bucket: 'in-flight',
        counts: 'concurrent',
        used: 2,
        remaining: 0,
        nextPointsAfterSeconds: null,
        resetAfterSeconds: null,
      }),
    );
    expect(await admin('/metrics')).toContain('\nweir_requests_in_flight{bucket="in-flight"} 2\n');
    for (const response of waiting) response.end();
    const answered = await Promise.all(asked);
    expect(answered.map(({ status }) => status)).toEqual([200, 200]);
    expect(answered[1]?.headers.get('RateLimit')).toMatch(/, "in-flight";r=[01]$/);
    await untilFull(gateway, waiting);
  });

  it('a client that always has as many requests in flight as it may is never refused', async () => {
    const gateway = await start({
      store: store(),
      limits: {
        windowSeconds: 1,
        limits: { 'in-flight': IN_FLIGHT },
        defaults: { 'account-read': 100_000, 'organization-read': 100_000 },
      },
    });
    const statuses = new Set<number>();
    const client = async () => {
      for (let sent = 0; sent < 50; sent++) statuses.add((await gateway.send('GET', '/v3/reports')).status);
    };
    await Promise.all([client(), client()]);
    expect([...statuses]).toEqual([200]);
  });

  it('a WebSocket holds its slot until both of its ends are closed', async () => {
    const upstream = await startTunnelUpstream();
    const gateway = await start({
      store: store(),
      upstream,
      limits: { limits: { 'in-flight': { ...IN_FLIGHT, concurrent: 1 } } },
    });
    const first = await untilOpen(gateway);
    const second = await handshake(gateway.url, '/v3/feed', ['Authorization: Bearer service']);
    expect(second.status).toBe(429);
    first.socket.resetAndDestroy();
    await untilOpen(gateway);
    upstream.tunnels.at(-1)?.resetAndDestroy();
    await untilOpen(gateway);
  });

  it('a request that another bucket refuses holds nothing', async () => {
    const { upstream, waiting } = await startPatient();
    const gateway = await start({
      store: store(),
      upstream,
      limits: {
        limits: {
          'in-flight': IN_FLIGHT,
          few: { per: 'account', requests: 3, window: '1s', operations: ['reports'] },
        },
      },
    });
    for (let sent = 0; sent < 3; sent++) {
      const asked = gateway.send('GET', '/v3/reports');
      await vi.waitFor(() => expect(waiting).toHaveLength(sent + 1), SOON);
      waiting[sent]?.end();
      expect((await asked).status).toBe(200);
    }
    const refused = await Promise.all(Array.from({ length: 5 }, () => gateway.send('GET', '/v3/reports')));
    expect(refused.map(({ status }) => status)).toEqual([429, 429, 429, 429, 429]);
    await pause(1_100);
    await untilFull(gateway, waiting);
  });

  it('a shadow limit on requests in flight refuses none, and one can be changed, or be for a plan alone', async () => {
    const { upstream, waiting } = await startPatient();
    const gateway = await start({
      store: store(),
      upstream,
      settings: { log: { level: 'info' } },
      limits: {
        limits: {
          tried: { ...IN_FLIGHT, concurrent: 1, shadow: true },
          'in-flight': { ...IN_FLIGHT, concurrent: 'none' },
        },
        plans: { small: { 'in-flight': 2 } },
        accounts: { acct_1: { plan: 'small' } },
      },
    });
    await untilFull(gateway, waiting);
    for (const response of waiting.splice(0)) response.end();
    await vi.waitFor(
      () => expect(gateway.lines.some((line) => line.includes('"shadowDenied":["tried"]'))).toBe(true),
      SOON,
    );
    const put = await fetch(`${gateway.adminUrl}/limits/live/accounts/acct_1`, {
      method: 'PUT',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ 'in-flight': 3, for: '1h', why: 'a test' }),
    });
    expect(put.status).toBe(200);
    await untilFull(gateway, waiting, 3);
  });
});

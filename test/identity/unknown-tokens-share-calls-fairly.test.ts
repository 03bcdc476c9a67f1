import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { PLENTY } from '../fixtures/configuration.ts';
import { startGateway, type TestGateway } from '../fixtures/gateway.ts';
import { introspectionSettings, startIssuer, type TestIssuer } from '../fixtures/issuer.ts';

let issuer: TestIssuer;
let gateway: TestGateway;
let release: () => void;
let untilReleased: Promise<void>;

beforeEach(async () => {
  issuer = await startIssuer();
  untilReleased = new Promise((resolve) => {
    release = resolve;
  });
  gateway = await startGateway({
    limits: PLENTY,
    settings: {
      // Long enough that no answer of the tests is late.
      ...introspectionSettings(issuer, { timeoutMs: 60_000 }),
      listen: { host: '127.0.0.1', port: 0, trustedProxies: ['127.0.0.0/8', '10.0.0.0/8'] },
    },
  });
});
afterEach(async () => {
  release();
  await gateway.close();
  await issuer.close();
});

/** Statuses of requests with new tokens, that each is from what an X-Forwarded-For names. */
function statusesOf(tokens: readonly string[], from: (index: number) => string): Promise<readonly number[]> {
  const requests = tokens.map(async (token, index) => {
    const headers = { 'X-Forwarded-For': from(index) };
    return (await gateway.send('GET', '/v3/things', { token, headers })).status;
  });
  return Promise.all(requests);
}

function madeUp(count: number): readonly string[] {
  const tokens = Array.from({ length: count }, (_, index) => `made-up-${index}`);
  for (const token of tokens) issuer.held.set(token, untilReleased);
  return tokens;
}

function legitimate(count: number): readonly string[] {
  const tokens = Array.from({ length: count }, (_, index) => `legitimate-${index}`);
  for (const token of tokens) issuer.tokens.set(token, { active: true, sub: 'svc_1', account: 'acct_1' });
  return tokens;
}

const PATIENCE = { timeout: 60_000, interval: 20 };

/** The flood's first tokens are being asked about, and the others wait. */
async function flooded(): Promise<void> {
  await vi.waitFor(() => expect(issuer.introspected.length).toBeGreaterThanOrEqual(96), PATIENCE);
}

it.each([
  [200, 'one address', (index: number) => `198.51.100.${index % 250}, 203.0.113.7, 10.0.0.1`],
  [150, 'one IPv6 network', (index: number) => `2001:db8:0:1::${index.toString(16)}`],
])(
  '%i made-up tokens of %s that are all under way leave room for the new tokens of others',
  async (count, _, from) => {
    const flood = statusesOf(madeUp(count), from);
    await flooded();
    expect(await statusesOf(legitimate(25), () => '192.0.2.1')).toEqual(Array(25).fill(200));
    const asked = issuer.introspected.filter(({ token }) => token.startsWith('made-up'));
    expect(asked.length, 'of one address').toBe(96);
    release();
    expect(new Set(await flood)).toEqual(new Set([401]));
  },
  60_000,
);

it('new tokens from the same address queue behind the made-up ones and are not refused', async () => {
  const flood = statusesOf(madeUp(150), () => '203.0.113.7');
  await flooded();
  const others = statusesOf(legitimate(25), () => '203.0.113.7');
  release();
  expect(await others).toEqual(Array(25).fill(200));
  expect(new Set(await flood)).toEqual(new Set([401]));
});

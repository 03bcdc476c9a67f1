import { describe, expect, it } from 'vitest';
import { PLENTY } from '../../fixtures/configuration.ts';
import { startSettling } from '../../fixtures/settling.ts';
import { STORES } from '../../fixtures/stores.ts';
import { SharedSettling } from './shared-settling.ts';

/** Each request counts as 1 besides its points. */
const LIMITS = { ...PLENTY, limits: { calls: { per: 'account', requests: 1_000, window: '1m' } } };

/** What is used of the Account's buckets. */
async function used({ gateway }: SharedSettling, account: string): Promise<Record<string, number>> {
  const { buckets } = (await (await fetch(`${gateway.adminUrl}/usage/accounts/${account}`)).json()) as {
    readonly buckets: readonly { readonly bucket: string; readonly used: number }[];
  };
  return Object.fromEntries(buckets.map((one) => [one.bucket, one.used]));
}

const states = (points: number) => JSON.stringify({ usage: { total_tokens: points } });

describe.each(STORES)('with the $kind store', ({ store }) => {
  const shared = new SharedSettling({ limits: LIMITS, store: store() });

  it.each([
    ['less than it has reserved', 812],
    ['nothing', 0],
    ['more than it has reserved', 9_000],
  ])('a response that costs %s', async (_, points) => {
    const token = shared.newCaller();
    shared.answer = (response) => response.end(states(points));
    const response = await shared.gateway.send('POST', '/json', { token });
    await response.text();
    expect(response.headers.get('RateLimit')).toContain(`"account-write";r=${1_000_000 - 4_000};`);
    await expect.poll(() => used(shared, token)).toMatchObject({ 'account-write': points, calls: 1 });
    expect(await shared.lastCost()).toEqual({ cost: 4_000, settled: points });
  });

  it('a bucket above its limit refuses until there is room again', async () => {
    const limits = { defaults: { ...PLENTY.defaults, 'account-write': 40_000 } };
    const gateway = await startSettling({ limits, store: store() });
    gateway.answer = (response) => response.end(states(90_000));
    expect((await gateway.send('POST', '/json')).status).toBe(200);
    await expect.poll(async () => (await gateway.send('POST', '/json')).status).toBe(429);
  });

  it.each([
    [500, 0],
    [503, 0],
    [404, 0],
    [403, 812],
    [200, 812],
  ])('a response with %i, where 5xx and 404 are free, costs %i', async (status, points) => {
    const token = shared.newCaller();
    shared.answer = (response) => response.writeHead(status).end(states(812));
    await (await shared.gateway.send('POST', '/refund', { token })).text();
    await expect
      .poll(() => used(shared, token))
      .toMatchObject({ 'account-write': points, calls: points === 0 ? 0 : 1 });
    expect(await shared.lastCost()).toEqual({ cost: 4_000, settled: points });
  });
});

describe('operations.refundOn', () => {
  const operations = {
    list: [
      { method: 'GET', path: '/listed', cost: 3 },
      { method: 'GET', path: '/own', cost: 3, refundOn: [] },
    ],
    refundOn: ['5xx'],
  };
  const shared = new SharedSettling({ operations, limits: LIMITS });

  it.each([
    ['/listed', 0],
    ['/unlisted', 0],
    ['/own', 3],
  ])('applies to operations without their own, unlisted ones too: %s costs %i', async (path, points) => {
    const token = shared.newCaller();
    shared.answer = (response) => response.writeHead(500).end();
    await (await shared.gateway.send('GET', path, { token })).text();
    await shared.lastCost();
    await expect
      .poll(() => used(shared, token))
      .toMatchObject({ 'account-read': points, calls: points === 0 ? 0 : 1 });
  });

  it("applies to Weir's own 503 after the charge", async () => {
    const token = shared.newCaller();
    shared.answer = (response) => response.destroy();
    expect((await shared.gateway.send('GET', '/listed', { token })).status).toBe(503);
    expect(await shared.lastCost()).toEqual({ cost: 3, settled: 0 });
    await expect.poll(() => used(shared, token)).toMatchObject({ 'account-read': 0, calls: 0 });
  });
});

it('usage, top talkers and metrics count what was settled', async () => {
  const gateway = await startSettling();
  gateway.answer = (response) => response.end(states(812));
  await (await gateway.send('POST', '/json')).text();
  await gateway.costOf();
  const usage = await (await fetch(`${gateway.adminUrl}/usage/accounts/acct_1`)).json();
  expect(usage).toMatchObject({
    recent: { '1m': { points: 812, requests: 1 } },
    operations: [{ points: 812 }],
  });
  expect(await gateway.metrics()).toContain('weir_points_charged_total{kind="write"} 812');
});

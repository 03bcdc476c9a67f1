import { describe, expect, it, onTestFinished } from 'vitest';
import { PLENTY } from '../../fixtures/configuration.ts';
import { startGateway } from '../../fixtures/gateway.ts';
import { linesOf } from '../../fixtures/log-lines.ts';
import { STORES } from '../../fixtures/stores.ts';
import { startUpstream } from '../../fixtures/upstream.ts';

const LIST = [
  { method: 'POST', path: '/settled', cost: 900, settle: { header: 'x-cost' }, refundOn: ['5xx'] },
  { method: 'GET', path: '/plain', cost: 1 },
];
const LIMITS = { windowSeconds: 60, defaults: { ...PLENTY.defaults, 'account-write': 1_000 } };

/** A gateway whose requests state what they cost, and with which status they are answered. */
async function start(store: Record<string, unknown>, limits: Record<string, unknown> = LIMITS) {
  const upstream = await startUpstream(({ headers, method }, response) => {
    const cost = headers['x-wanted'];
    response.writeHead(
      Number(headers['x-status'] ?? 200),
      method === 'POST' && cost ? { 'X-Cost': cost } : {},
    );
    response.end();
  });
  const settings = {
    operations: { list: LIST, maxCost: 1_000 },
    notifications: { log: true },
    log: { level: 'info' },
    decisions: { host: '127.0.0.1', port: 0, trusted: ['127.0.0.1'] },
  };
  const gateway = await startGateway({ upstream, settings, limits, store });
  onTestFinished(() => gateway.close());
  let sent = 0;
  /** Resolves once the request has its line in the access log. */
  const ask = async (headers: Record<string, string>) => {
    const response = await gateway.send('POST', '/settled', { headers });
    await response.text();
    sent += 1;
    await expect.poll(() => linesOf(gateway, 'request').length).toBe(sent);
    return response.status;
  };
  const noticed = () =>
    linesOf(gateway, 'limit.reached').map(({ bucket, percent, used }) => ({ bucket, percent, used }));
  return { gateway, ask, noticed };
}

const notice = (percent: number, used: number, bucket = 'account-write') => ({ bucket, percent, used });

describe.each(STORES)('with the $kind store', ({ store }) => {
  it('a reservation of 90 % that costs 10 %, or nothing, is not reported', async () => {
    const { ask, noticed } = await start(store());
    await ask({ 'x-wanted': '100' });
    await ask({ 'x-wanted': '5', 'x-status': '503' });
    // The next one finds what is really used, and is reported.
    await ask({ 'x-wanted': '720' });
    await expect.poll(noticed).toEqual([notice(80, 820)]);
  });

  it('a response that costs more than was reserved is reported at once', async () => {
    const { ask, noticed } = await start(store());
    await ask({ 'x-wanted': '1100' });
    await expect.poll(noticed).toEqual([notice(100, 1_000)]);
  });

  it('a cost that stays unknown is what was reserved', async () => {
    const { ask, noticed } = await start(store());
    await ask({});
    await expect.poll(noticed).toEqual([notice(80, 900)]);
  });

  it('a cost that is what was reserved is reported once', async () => {
    const { ask, noticed } = await start(store());
    await ask({ 'x-wanted': '900' });
    await expect.poll(noticed).toEqual([notice(80, 900)]);
  });

  it('a full shadow limit does not lend a limit the count of another one', async () => {
    const row = (points: number) => ({ per: 'account', points, window: '1h' });
    const limits = { tried: { ...row(1_000), shadow: true }, large: row(8_000), small: row(2_000) };
    const { ask, noticed } = await start(store(), { ...PLENTY, limits });
    await ask({ 'x-wanted': '900' });
    await ask({ 'x-wanted': '200' });
    expect(noticed()).toEqual([]);
    await ask({ 'x-wanted': '700' });
    await expect.poll(noticed).toEqual([notice(80, 1_800, 'small')]);
  });
});

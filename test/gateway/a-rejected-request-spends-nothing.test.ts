import { afterEach, describe, expect, it } from 'vitest';
import { remainingOf, startGateway, type TestGateway } from '../fixtures/gateway.ts';
import { STORES } from '../fixtures/stores.ts';

describe.each(STORES)('with the $kind store', ({ store }) => {
  let gateway: TestGateway;
  afterEach(() => gateway.close());

  async function spend(times: number, token: string, account?: string): Promise<void> {
    for (let count = 0; count < times; count++) {
      const answer = await gateway.send('GET', '/v3/things', { token, ...(account ? { account } : {}) });
      expect(answer.status).toBe(200);
    }
  }

  it('with 9 points left a cost of 10 is refused, and a cost of 1 is then admitted', async () => {
    gateway = await startGateway({ store: store() });
    await spend(11, 'lonely');
    const refused = await gateway.send('GET', '/v3/reports', { token: 'lonely' });
    expect(refused.status).toBe(429);
    expect(remainingOf(refused)).toEqual({ 'account-read': 9 });
    const admitted = await gateway.send('GET', '/v3/things', { token: 'lonely' });
    expect(admitted.status).toBe(200);
    expect(remainingOf(admitted)).toEqual({ 'account-read': 8 });
  });

  it('when the Organization is full its Accounts stay untouched', async () => {
    gateway = await startGateway({ store: store() });
    await spend(20, 'person', 'acct_1');
    await spend(10, 'person', 'acct_2');
    const refused = await gateway.send('GET', '/v3/things', { token: 'person', account: 'acct_2' });
    expect(refused.status).toBe(429);
    expect(await refused.json()).toMatchObject({ extensions: { bucket: 'organization-read', limit: 30 } });
    expect(remainingOf(refused)).toEqual({ 'account-read': 10, 'organization-read': 0 });
  });

  it('when the Account is full its Organization stays untouched', async () => {
    gateway = await startGateway({ store: store() });
    await spend(20, 'service');
    const refused = await gateway.send('GET', '/v3/things');
    expect(refused.status).toBe(429);
    expect(await refused.json()).toMatchObject({ extensions: { bucket: 'account-read', limit: 20 } });
    expect(remainingOf(refused)).toEqual({ 'account-read': 0, 'organization-read': 10 });
    expect(remainingOf(await gateway.send('GET', '/v3/things', { token: 'other' }))).toEqual({
      'account-read': 19,
      'organization-read': 9,
    });
  });

  it('the upstream never sees it, Idempotency-Key included', async () => {
    gateway = await startGateway({ store: store() });
    const headers = { 'Idempotency-Key': 'key-1' };
    for (let count = 0; count < 2; count++) await gateway.send('POST', '/v3/reports', { token: 'lonely' });
    const before = gateway.upstream.seen.length;
    expect((await gateway.send('POST', '/v3/reports', { token: 'lonely', headers })).status).toBe(429);
    expect(gateway.upstream.seen).toHaveLength(before);
  });
});

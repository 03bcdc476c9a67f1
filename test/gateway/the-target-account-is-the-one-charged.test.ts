import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { remainingOf, startGateway, type TestGateway } from '../fixtures/gateway.ts';
import { STORES } from '../fixtures/stores.ts';

describe.each(STORES)('with the $kind store', ({ store }) => {
  let gateway: TestGateway;
  beforeAll(async () => {
    gateway = await startGateway({ store: store() });
  });
  afterAll(() => gateway.close());

  it("a Person's own Account is not charged for what it does for another", async () => {
    await gateway.send('GET', '/v3/things', { token: 'person', account: 'acct_2' });
    expect(remainingOf(await gateway.send('GET', '/v3/things', { token: 'person' }))?.['account-read']).toBe(
      19,
    );
    expect(remainingOf(await gateway.send('GET', '/v3/things', { token: 'other' }))?.['account-read']).toBe(
      18,
    );
  });

  it("an Organization's service account acts for each Account of it", async () => {
    const answer = await gateway.send('POST', '/v3/things', { token: 'organization', account: 'acct_2' });
    expect(answer.status).toBe(200);
    expect(remainingOf(answer)).toEqual({ 'account-write': 19, 'organization-write': 29 });
    expect(
      (await gateway.send('POST', '/v3/things', { token: 'organization', account: 'acct_4' })).status,
    ).toBe(403);
  });

  it('a Person-only operation spends from the Person, under the names of the Account buckets', async () => {
    const answer = await gateway.send('GET', '/v3/mfa-factors', { token: 'person' });
    expect(answer.headers.get('RateLimit-Policy')).toBe(
      '"account-read";q=10;w=60, "account-write";q=10;w=60',
    );
    expect(remainingOf(answer)).toEqual({ 'account-read': 9 });
    const forAnother = await gateway.send('GET', '/v3/mfa-factors', { token: 'person', account: 'acct_2' });
    expect(remainingOf(forAnother)).toEqual({ 'account-read': 8 });
  });

  it("a full Person bucket is named in the 429, and the Person's Account is not affected", async () => {
    for (let count = 0; count < 10; count++)
      await gateway.send('POST', '/v3/mfa-factors', { token: 'person' });
    const refused = await gateway.send('POST', '/v3/mfa-factors', { token: 'person' });
    expect(refused.status).toBe(429);
    expect(await refused.json()).toMatchObject({ extensions: { bucket: 'person-write', limit: 10 } });
    expect(refused.headers.get('RateLimit')).toMatch(/^"account-write";r=0;t=\d+$/);
    expect((await gateway.send('POST', '/v3/things', { token: 'person' })).status).toBe(200);
  });
});

import { afterEach, describe, expect, it } from 'vitest';
import { startGateway, type TestGateway } from '../fixtures/gateway.ts';
import { STORES } from '../fixtures/stores.ts';

describe.each(STORES)('with the $kind store', ({ store }) => {
  let gateway: TestGateway;
  afterEach(() => gateway.close());

  it('all four buckets, Account buckets first', async () => {
    gateway = await startGateway({ store: store() });
    const answer = await gateway.send('POST', '/v3/things');
    expect(answer.headers.get('RateLimit-Policy')).toBe(
      '"account-read";q=20;w=60, "account-write";q=20;w=60, "organization-read";q=30;w=60, "organization-write";q=30;w=60',
    );
  });

  it('a raised limit is shown and enforced', async () => {
    gateway = await startGateway({
      store: store(),
      limits: { accounts: { acct_3: { 'account-read': 25 } } },
    });
    const answers = [];
    for (let count = 0; count < 26; count++)
      answers.push(await gateway.send('GET', '/v3/things', { token: 'lonely' }));
    expect(answers[0]?.headers.get('RateLimit-Policy')).toBe(
      '"account-read";q=25;w=60, "account-write";q=20;w=60',
    );
    expect(answers.map((answer) => answer.status)).toEqual([...Array(25).fill(200), 429]);
  });

  it('an Organization without a limit has no buckets', async () => {
    gateway = await startGateway({
      store: store(),
      limits: { organizations: { org_1: { 'organization-read': 'none', 'organization-write': 'none' } } },
    });
    const answer = await gateway.send('GET', '/v3/things');
    expect(answer.headers.get('RateLimit-Policy')).toBe(
      '"account-read";q=20;w=60, "account-write";q=20;w=60',
    );
    expect(answer.headers.get('RateLimit')).toBe('"account-read";r=19;t=60');
  });
});

import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { parseIdentities } from '../../src/config/files/identities/parse-identities.ts';
import { Refusal } from '../../src/domain/problems.ts';
import { RevokedToken } from '../../src/facts/revocations.ts';
import { StaticIdentities } from '../../src/identity/static.ts';
import { authorise } from '../../src/stages/authorise.ts';
import { PLENTY } from '../fixtures/configuration.ts';
import { remainingOf, startGateway, type TestGateway } from '../fixtures/gateway.ts';
import { sharedRedisUrl, uniquePrefix } from '../fixtures/redis-url.ts';

const keyPrefix = uniquePrefix();
let gateway: TestGateway;
let redis: Redis;

beforeAll(async () => {
  redis = new Redis(sharedRedisUrl());
  const store = { kind: 'redis', url: sharedRedisUrl(), keyPrefix, deadlineMs: 5000 };
  gateway = await startGateway({ store, limits: PLENTY });
});
afterAll(async () => {
  await gateway.close();
  redis.disconnect();
});

it('2,000 made-up Accounts create no key, and nobody is charged', async () => {
  const accounts = Array.from({ length: 2000 }, (_, index) => `acct_made_up_${index}`);
  for (let start = 0; start < accounts.length; start += 100) {
    const batch = accounts.slice(start, start + 100);
    const answers = await Promise.all(
      batch.map((account, index) =>
        gateway.send('GET', '/v3/things', { account, token: index % 2 === 0 ? 'person' : 'organization' }),
      ),
    );
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([403]));
  }
  const keys = await redis.keys(`${keyPrefix}:*`);
  // Each replica publishes that it runs, what changed, its top talkers and what it is asked about, under keys whose number does not depend on the Accounts.
  expect(keys.filter((key) => !/\{(top|owners|asked|present)\}|:changes:record$/.test(key))).toEqual([]);
});

it("attempts on another's Account leave its buckets untouched", async () => {
  const remaining = async () => remainingOf(await gateway.send('GET', '/v3/things', { token: 'lonely' }));
  const before = (await remaining())?.['account-read'] ?? 0;
  for (let count = 0; count < 50; count++) {
    const answer = await gateway.send('GET', '/v3/things', { token: 'person', account: 'acct_3' });
    expect(answer.status).toBe(403);
  }
  expect((await remaining())?.['account-read']).toBe(before - 1);
});

it('a million made-up Accounts never cause a charge', () => {
  const known = new StaticIdentities(
    parseIdentities(
      'tokens: {t: svc}\nprincipals: {svc: {type: ServiceAccount, organization: org_1}}',
      'test',
    ),
  );
  const principal = known.principalOf('t');
  if (typeof principal === 'string' || principal instanceof RevokedToken)
    throw new Error('the token is in the file');
  let refused = 0;
  for (let index = 0; index < 1_000_000; index++) {
    const authorised = authorise(known, principal, { access: 'caller' }, `acct_made_up_${index}`);
    if (authorised instanceof Refusal && authorised.status === 403) refused++;
  }
  expect(refused).toBe(1_000_000);
});

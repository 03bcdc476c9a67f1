import { expect, it } from 'vitest';
import { causeOf } from '../../../../src/admin/fleet/cause.ts';
import type { RefusedRequest } from '../../../../src/admin/fleet/refusals.ts';

/** A ranking of who was refused how often. */
function ranking(refused: Readonly<Record<string, number>>) {
  const byRefused = Object.entries(refused).map(([id, count]) => ({
    id,
    refused: count,
    points: 0,
    requests: count,
    error: 0,
  }));
  return { byPoints: [], byRequests: [], byRefused };
}

const refusal = (organization: string, detail: string): RefusedRequest => ({
  atMs: 1,
  account: 'acct_1',
  organization,
  principal: 'svc_1',
  address: null,
  operation: 'list',
  status: 429,
  reason: 'RateLimitExceeded',
  detail,
  cost: 1,
  bucket: 'account-read',
  retryAfterSeconds: 1,
  requestId: 'r',
});

it.each([
  ['an Account with most of them', { acct_1: 78, acct_2: 22 }, {}, 'account acct_1 0.78'],
  [
    'the first of many',
    { acct_1: 20, acct_2: 20, acct_3: 20, acct_4: 20, acct_5: 20 },
    {},
    'account acct_1 0.2',
  ],
  [
    'an Organization of several such Accounts',
    { acct_1: 40, acct_2: 40, acct_3: 20 },
    { org_1: 80 },
    'organization org_1 0.8',
  ],
  [
    'an Account, though it has an Organization',
    { acct_1: 80, acct_3: 20 },
    { org_1: 80 },
    'account acct_1 0.8',
  ],
])('the cause is %s', (_name, accounts, organizations, expected) => {
  const top = { accounts: ranking(accounts), organizations: ranking(organizations) };
  const { scope, id, share } = causeOf(top, 100, []) ?? {};
  expect(`${scope} ${id} ${share}`).toBe(expected);
});

it('the share is of all refusals, including refusals of addresses', () => {
  const top = { accounts: ranking({ acct_1: 60, acct_2: 40 }), organizations: ranking({}) };
  expect(causeOf(top, 150, [])).toMatchObject({ id: 'acct_1', share: 0.4 });
});

it('an Organization whose own limit refuses is the cause, whichever Account it hits', () => {
  const top = { accounts: ranking({ acct_1: 100 }), organizations: ranking({ org_1: 100 }) };
  const byOrganization = refusal('org_1', 'The Organization has used its 900 points in 5 seconds for reads');
  const byAccount = refusal('org_1', 'Account acct_1 has used its 300 points in 5 seconds for reads');
  expect(causeOf(top, 100, [byOrganization])).toMatchObject({ scope: 'organization', id: 'org_1' });
  expect(causeOf(top, 100, [byAccount])).toMatchObject({ scope: 'account', id: 'acct_1' });
});

it('nobody is the cause of refusals that nobody is ranked for', () => {
  const nobody = { accounts: ranking({}), organizations: ranking({}) };
  expect(causeOf(nobody, 0, [])).toBeUndefined();
  // Addresses are not ranked, and most of the refusals are theirs.
  expect(causeOf({ accounts: ranking({ acct_1: 3 }), organizations: ranking({}) }, 500, [])).toBeUndefined();
});

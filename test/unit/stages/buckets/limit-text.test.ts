import { expect, test } from 'vitest';
import { limitText } from '../../../../src/stages/buckets/limit-text.ts';
import type { PayerBucket } from '../../../../src/stages/buckets/payer-bucket.ts';

const bucket: PayerBucket = {
  name: 'account-read',
  headerName: 'account-read',
  owner: 'acct_1',
  key: 'k',
  limit: 10_000,
  windowSeconds: 60,
  scope: 'account',
  counts: 'points',
  isContract: true,
  selection: { kind: 'read' },
  source: 'default',
  plan: undefined,
  untilMs: Number.POSITIVE_INFINITY,
};

test.each<[Partial<PayerBucket>, number, number, string]>([
  [{}, 0, 12, 'Account acct_1 has used its 10,000 points per minute for reads; try again in 12 s.'],
  [
    { name: 'account-write', selection: { kind: 'write' }, limit: 20, windowSeconds: 300 },
    6,
    121,
    'Account acct_1 has 6 left of its 20 points in 5 min for writes, and this request needs 7; try again in 3 min.',
  ],
  [
    { name: 'organization-read', scope: 'organization', owner: 'org_1', windowSeconds: 86_400 },
    0,
    7_201,
    'The Organization has used its 10,000 points per day for reads; try again in 3 h.',
  ],
  [
    { name: 'person-read', scope: 'person', owner: 'person_1', windowSeconds: 90 },
    0,
    90,
    'Person person_1 has used its 10,000 points in 90 s for reads; try again in 90 s.',
  ],
  [
    { name: 'address-read', scope: 'address', owner: '203.0.113.7', windowSeconds: 2_592_000 },
    0,
    2_591_999,
    'Address 203.0.113.7 has used its 10,000 points in 30 days for reads; try again in 30 days.',
  ],
  [
    { name: 'account-minute', selection: {} },
    0,
    12,
    'Account acct_1 has used its 10,000 points per minute; try again in 12 s.',
  ],
  [
    {
      name: 'key-hour',
      scope: 'principal',
      owner: 'svc_1',
      selection: {},
      counts: 'requests',
      windowSeconds: 3_600,
    },
    0,
    600,
    'Principal svc_1 has used its 10,000 requests per hour; try again in 10 min.',
  ],
  [
    { name: 'search', limit: 25, windowSeconds: 1, selection: { tags: ['search'] } },
    0,
    1,
    'Account acct_1 has used its 25 points per second for search; try again in 1 s.',
  ],
])(
  'the detail of a 429 says what is full and when the cost fits: %j',
  (changes, remaining, seconds, text) => {
    expect(limitText({ ...bucket, ...changes }, remaining, 7, seconds)).toBe(text);
  },
);

test('the detail says that only a part of the limit applies while Redis does not answer', () => {
  expect(limitText(bucket, 0, 1, 12, true)).toBe(
    "Account acct_1 has used this replica's part of its 10,000 points per minute for reads; try again in 12 s.",
  );
  const inFlight: PayerBucket = {
    ...bucket,
    limit: 9,
    windowSeconds: 0,
    counts: 'concurrent',
    selection: {},
  };
  expect(limitText(inFlight, 0, 1, 1, true)).toBe(
    "Account acct_1 has used this replica's part of its 9 requests in progress at the same time; try again when one has ended.",
  );
});

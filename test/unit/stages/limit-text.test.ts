import { expect, test } from 'vitest';
import type { PlannedBucket } from '../../../src/stages/buckets.ts';
import { limitText } from '../../../src/stages/limit-text.ts';

const bucket: PlannedBucket = {
  name: 'account-read',
  headerName: 'account-read',
  owner: 'acct_1',
  key: 'k',
  limit: 10_000,
  windowSeconds: 60,
  source: 'default',
  untilMs: Number.POSITIVE_INFINITY,
};

test.each<[Partial<PlannedBucket>, number, number, string]>([
  [{}, 0, 12, 'Account acct_1 has used its 10,000 points per minute for reads; the next fit in 12 s.'],
  [
    { name: 'account-write', limit: 20, windowSeconds: 300 },
    6,
    121,
    'Account acct_1 has 6 left of its 20 points in 5 minutes for writes, and this request costs 7; it fits in 3 minutes.',
  ],
  [
    { name: 'organization-read', owner: 'org_1', windowSeconds: 86_400 },
    0,
    7_201,
    'The Organization has used its 10,000 points per day for reads; the next fit in 3 hours.',
  ],
  [
    { name: 'person-read', owner: 'person_1', windowSeconds: 90 },
    0,
    90,
    'Person person_1 has used its 10,000 points in 90 seconds for reads; the next fit in 90 s.',
  ],
  [
    { name: 'address-read', owner: '203.0.113.7', windowSeconds: 2_592_000 },
    0,
    2_591_999,
    'Address 203.0.113.7 has used its 10,000 points in 30 days for reads; the next fit in 30 days.',
  ],
])(
  'the detail of a 429 says what is full and when the cost fits: %j',
  (changes, remaining, seconds, text) => {
    expect(limitText({ ...bucket, ...changes }, remaining, 7, seconds)).toBe(text);
  },
);

import { describe, expect, it } from 'vitest';
import { limitOwner, readLimitRequest } from '../../../src/admin/facts/limit-request.ts';
import { readRevocationRequest } from '../../../src/admin/facts/revocation-request.ts';
import { parseIdentities } from '../../../src/config/files/identities/parse-identities.ts';
import { parseLimits, parseOverrides } from '../../../src/config/files/limits/parse-limits.ts';
import { principalTarget } from '../../../src/facts/revocation-target.ts';
import { readPrincipal } from '../../../src/identity/claims.ts';

const IDS = [
  'a\rb',
  'a\nb',
  'a\0b',
  'a b',
  'a\tb',
  '\u001b[2J',
  'a\u007f',
  'a\u0085',
  '\u009b31m',
  '\u202ea',
  'a\u200bb',
  'é',
  '',
  'x'.repeat(257),
];

const CLAIMS = {
  principal: 'sub',
  type: 'type',
  account: 'account',
  organization: 'org',
  actsFor: 'for',
  plan: 'plan',
  periodStartsOn: 'periodStartsOn',
};

/** Each place that takes an id from outside, as a function that throws or returns undefined for what is no id. */
const PLACES: Readonly<Record<string, (id: string) => unknown>> = {
  'an Account of limits.yaml': (id) => parseLimits(JSON.stringify({ accounts: { [id]: {} } }), 'f'),
  'an Organization of an overrides file': (id) =>
    parseOverrides(JSON.stringify({ organizations: { [id]: { 'organization-read': 5 } } }), 'f'),
  'an Account of identities.yaml': (id) => parseIdentities(JSON.stringify({ accounts: { [id]: {} } }), 'f'),
  'a principal of identities.yaml': (id) => {
    const principals = { [id]: { type: 'Person', account: 'a' } };
    return parseIdentities(JSON.stringify({ accounts: { a: {} }, principals }), 'f');
  },
  'a live limit': (id) =>
    readLimitRequest({ 'account-read': 5, why: 'w' }, limitOwner('accounts', id), { rows: [] }),
  'a live limit of an address': (id) =>
    readLimitRequest({ 'address-read': 5, why: 'w' }, limitOwner('addresses', id), { rows: [] }),
  'a revocation by the admin port': (id) => readRevocationRequest({ principal: id, why: 'w' }),
  'a revocation by the command': (id) => principalTarget(id, { token: '--token', principal: '--principal' }),
  'a claim of a token': (id) => {
    const read = readPrincipal({ sub: id, account: 'a' }, CLAIMS);
    return typeof read === 'string' ? undefined : read;
  },
};

function isTaken(place: (id: string) => unknown, id: string): boolean {
  try {
    return place(id) !== undefined;
  } catch {
    return false;
  }
}

describe('an id has no control character, no space and nothing that hides or turns text', () => {
  it.each(Object.entries(PLACES))('%s', (name, place) => {
    expect(IDS.filter((id) => isTaken(place, id))).toEqual([]);
    expect(isTaken(place, name.includes('address') ? '203.0.113.7' : 'acct:a/1@x')).toBe(true);
  });
});

import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { parseIdentities } from '../../../src/config/files/identities/parse-identities.ts';
import { StaticIdentities } from '../../../src/identity/static.ts';

const shaOf = (token: string) => `sha256:${createHash('sha256').update(token).digest('hex')}`;

/** An identities file in which each token has a principal and an Account of its own. */
function identitiesOf(tokens: readonly string[], formOf: (token: string) => string = (token) => token) {
  const file = {
    tokens: Object.fromEntries(tokens.map((token, index) => [formOf(token), `svc_${index}`])),
    principals: Object.fromEntries(
      tokens.map((_, index) => [`svc_${index}`, { type: 'ServiceAccount', account: `acct_${index}` }]),
    ),
    accounts: Object.fromEntries(
      tokens.map((_, index) => [`acct_${index}`, { organization: `org_${index % 7}` }]),
    ),
  };
  return parseIdentities(JSON.stringify(file), 'identities.yaml');
}

it('finds each token of any number of them, as itself or by its digest, and no other', () => {
  const tokens = fc.uniqueArray(fc.stringMatching(/^[a-z0-9]{1,12}$/), { maxLength: 300 });
  fc.assert(
    fc.property(tokens, fc.boolean(), (all, areDigests) => {
      const identities = new StaticIdentities(identitiesOf(all, areDigests ? shaOf : undefined));
      const found = all.map((token) => identities.principalOf(token));
      expect(found).toMatchObject(all.map((_, index) => ({ id: `svc_${index}` })));
      expect(identities.principalOf('A')).toBe('unknown-token');
    }),
    { numRuns: 30 },
  );
});

it('forgets the tokens that a reload leaves out', () => {
  const identities = new StaticIdentities(identitiesOf(['one', 'two']));
  identities.replace(identitiesOf(['two']));
  expect(identities.principalOf('one')).toBe('unknown-token');
  expect(identities.principalOf('two')).toMatchObject({ id: 'svc_0' });
});

it('keeps one object for Accounts that are alike, and one string for the id of each', () => {
  const { accounts, principals } = identitiesOf(Array.from({ length: 100 }, (_, index) => `token${index}`));
  expect(accounts.size).toBe(100);
  expect(new Set(accounts.values()).size).toBe(7);
  expect(accounts.get('acct_8')).toEqual({ organization: 'org_1' });
  const sets = [...principals.values()].map((one) => ('actsFor' in one ? one.actsFor : undefined));
  expect(new Set(sets).size).toBe(1);
});

import { hash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { parseIdentities } from '../../../src/config/files/identities/parse-identities.ts';
import { ConfigError, formatProblem } from '../../../src/config/problem.ts';
import { digestOf, digestOfHex } from '../../../src/domain/token-digest.ts';

const read = (text: string) => parseIdentities(text, 'identities.yaml');

function problemsOf(text: string): string[] {
  try {
    read(text);
  } catch (error) {
    if (error instanceof ConfigError) return error.problems.map(formatProblem);
    throw error;
  }
  return [];
}

const digest = 'a'.repeat(64);

describe('identities.yaml', () => {
  test('gives the principal of each token', () => {
    const identities = read(`
tokens: { demo-person: person_1, "sha256:${digest.toUpperCase()}": svc_1, third: svc_org }
principals:
  person_1: { type: Person, account: acct_1, actsFor: [acct_2] }
  svc_1: { type: ServiceAccount, account: acct_1 }
  svc_org: { type: ServiceAccount, organization: org_1 }
accounts: { acct_1: { organization: org_1 }, acct_2: { organization: org_1 }, acct_3: {} }`);
    expect(identities.tokens.get(digestOf('demo-person'))).toEqual({
      id: 'person_1',
      type: 'Person',
      account: 'acct_1',
      actsFor: new Set(['acct_2']),
    });
    expect(identities.tokens.get(digestOfHex(digest))?.id).toBe('svc_1');
    expect(identities.tokens.get(digestOf('third'))).toEqual({
      id: 'svc_org',
      type: 'ServiceAccount',
      organization: 'org_1',
    });
    expect(identities.accounts.get('acct_1')).toEqual({ organization: 'org_1' });
    expect(identities.accounts.get('acct_3')).toEqual({});
  });

  test('the Accounts of an Organization may begin their months on different days', () => {
    const { accounts } = read(
      'accounts: { acct_1: { organization: org_1 }, acct_2: { organization: org_1, periodStartsOn: 15 } }',
    );
    expect([accounts.get('acct_1')?.periodStartsOn, accounts.get('acct_2')?.periodStartsOn]).toEqual([
      undefined,
      15,
    ]);
  });

  test('the last of many entries is checked like the first', () => {
    const good = { type: 'Person', account: 'acct_1', actsFor: ['acct_1'] };
    const bad = { type: 'Robot', account: 'two words', actsFor: 'acct_1' };
    const entries = Object.fromEntries(Array.from({ length: 100 }, (_, index) => [`p${index}`, good]));
    const problemsOfLast = (principals: object) =>
      problemsOf(JSON.stringify({ principals, accounts: { acct_1: {} } })).map((one) =>
        one.replace(/.*principals\.last/, ''),
      );
    const alone = problemsOfLast({ last: bad });
    expect(alone).toHaveLength(3);
    expect(problemsOfLast({ ...entries, last: bad })).toEqual(alone);
    expect(problemsOfLast(entries)).toEqual([]);
  });

  test('ids that are similar to an unknown one are looked for 20 times', () => {
    const tokens = Object.fromEntries(Array.from({ length: 50 }, (_, index) => [`token${index}`, 'svc_2']));
    const principals = { svc_1: { type: 'ServiceAccount', organization: 'org_1' } };
    const problems = problemsOf(JSON.stringify({ tokens, principals }));
    expect(problems.filter((problem) => problem.endsWith('did you mean "svc_1"?'))).toHaveLength(20);
    expect(problems.filter((problem) => problem.endsWith('add it to principals'))).toHaveLength(30);
  });

  test('an id that could not go upstream in a header is refused', () => {
    const rule = 'must be an id: printable ASCII without spaces, at most 256 characters';
    expect(
      problemsOf(
        'principals: { "person 1": { type: ServiceAccount, account: acct_1 } }\naccounts: { acct_1: {}, ключ: {} }',
      ),
    ).toEqual([
      `identities.yaml:1: principals["person 1"]: ${rule}`,
      `identities.yaml:2: accounts["ключ"]: ${rule}`,
    ]);
    expect(problemsOf('accounts: { acct_1: { organization: "org\\n1" } }')).toEqual([
      `identities.yaml:1: accounts.acct_1.organization: ${rule}, is "org\\n1"`,
    ]);
  });

  test('a token with a space is refused, and not shown', () => {
    const text =
      'tokens: { "secret-part other": svc_1 }\nprincipals: { svc_1: { type: ServiceAccount, account: a } }';
    expect(problemsOf(`${text}\naccounts: { a: {} }`)).toEqual([
      'identities.yaml:1: tokens["secr..."]: a token must not contain spaces',
    ]);
  });

  test('a token that is written as its digest as well has one principal', () => {
    const text = (second: string, hex: (digest: string) => string) =>
      `tokens:
  very-secret: svc_1
  "sha256:${hex(hash('sha256', 'very-secret'))}": ${second}
principals:
  svc_1: { type: ServiceAccount, organization: org_1 }
  svc_2: { type: ServiceAccount, organization: org_1 }
`;
    const problem = expect.stringMatching(
      /^identities\.yaml:3: tokens\["sha256:\w{6}\.\.\."\]: is the same token as an earlier entry, which names another principal/i,
    );
    expect(problemsOf(text('svc_2', (digest) => digest))).toEqual([problem]);
    expect(problemsOf(text('svc_2', (digest) => digest.toUpperCase()))).toEqual([problem]);
    expect(problemsOf(text('svc_1', (digest) => digest))).toEqual([]);
  });

  test('a token behind its principal is not shown', () => {
    const text =
      'tokens: { svc_1: very-secret-token }\nprincipals: { svc_1: { type: ServiceAccount, organization: o } }';
    expect(problemsOf(text)).toEqual([
      'identities.yaml:1: tokens["s..."]: is the id of a principal: write the token first, and then its principal',
    ]);
  });

  test('a property name of Object.prototype is not a principal', () => {
    const identities = read('');
    expect(identities.tokens.get(digestOf('constructor'))).toBeUndefined();
    expect(identities.accounts.get('toString')).toBeUndefined();
  });

  test('all inconsistencies are reported together, and no token is shown in full', () => {
    const problems = problemsOf(`tokens:
  very-secret-token: persn_1
  sha256:abc: person_1
  third-secret: toString
principals:
  person_1: { type: Person, account: acct_9, actsFor: [acct_1, acct_8] }
  person_2: { type: Person, organization: org_1 }
  svc_1: { type: ServiceAccount }
  svc_2: { type: ServiceAccount, account: acct_1, organization: org_1 }
  svc_3: { type: ServiceAccount, organization: org_1, actsFor: [acct_1] }
accounts: { acct_1: {} }
`);
    expect(problems.toSorted()).toEqual([
      'identities.yaml:10: principals.svc_3: a ServiceAccount of an Organization acts for all its Accounts and cannot have actsFor',
      'identities.yaml:2: tokens["very..."]: principal "persn_1" is unknown: did you mean "person_1"?',
      'identities.yaml:3: tokens["sha256:abc..."]: must be sha256: followed by 64 hexadecimal digits',
      'identities.yaml:4: tokens["thir..."]: principal "toString" is unknown: add it to principals',
      'identities.yaml:6: principals.person_1.account: Account "acct_9" is unknown: did you mean "acct_1"?',
      'identities.yaml:6: principals.person_1.actsFor.1: Account "acct_8" is unknown: did you mean "acct_1"?',
      'identities.yaml:7: principals.person_2: a Person has an account, not an organization',
      'identities.yaml:8: principals.svc_1: has no owner: a ServiceAccount needs an account, which pays for it, or an organization',
      'identities.yaml:9: principals.svc_2: a ServiceAccount has either an account or an organization, not both',
    ]);
  });

  test('a key that is written twice is named, unless it is a token', () => {
    expect(problemsOf('accounts: { acct_1: {}, acct_2: {}, acct_1: {} }\n')).toEqual([
      'identities.yaml:1: is not valid YAML: the key "acct_1" is written twice',
    ]);
    expect(problemsOf('tokens:\n  very-secret: a\n  other: b\n  very-secret: c\n')).toEqual([
      'identities.yaml:4: is not valid YAML: a token is written twice',
    ]);
  });
});

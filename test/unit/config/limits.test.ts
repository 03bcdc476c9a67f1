import { describe, expect, test } from 'vitest';
import { checkCosts, findLowShadows, lowShadowWarning, placesIn } from '../../../src/config/checks/costs.ts';
import { parseLimits } from '../../../src/config/files/limits/parse-limits.ts';
import { ConfigError, formatProblem } from '../../../src/config/problem.ts';
import { limitInForce } from '../../fixtures/limits.ts';

const limitsOf = (text: string) => parseLimits(text, 'limits.yaml');

function problemsOf(text: string): readonly string[] {
  try {
    limitsOf(text);
  } catch (error) {
    if (error instanceof ConfigError) return error.problems.map(formatProblem);
    throw error;
  }
  return [];
}

const nowMs = Date.parse('2026-11-20T12:00:00Z');

describe('limits.yaml', () => {
  test("an empty file gives the contract's defaults", () => {
    const limits = limitsOf('');
    const inForce = (bucket: string) => limitInForce(limits, bucket, 'x', nowMs).limit;
    expect(limits.windowSeconds).toBe(1);
    expect([inForce('account-read'), inForce('account-write')]).toEqual([500, 250]);
    expect([inForce('organization-read'), inForce('organization-write')]).toEqual([2000, 1000]);
    expect([inForce('person-read'), inForce('person-write')]).toEqual([500, 250]);
  });

  test('a key without quotes that YAML reads as another text is refused, with its line', () => {
    const override = (id: string) => `accounts:\n  ok: { account-read: 3 }\n  ${id}: { account-read: 5 }\n`;
    for (const id of ['007', '12e4', '175928847299117063', '0x1F', '1.0', '-0', '~', 'True', 'Null']) {
      expect(problemsOf(override(id)), id).toEqual([
        expect.stringMatching(
          /^limits\.yaml:3: has a key that YAML reads as (a number|a boolean|null), .*: put it in quotes$/,
        ),
      ]);
      expect(
        problemsOf(`accounts: { ok: { account-read: 3 }, ${id}: { account-read: 5 } }`),
        id,
      ).toHaveLength(1);
      const quoted = limitsOf(override(`"${id}"`));
      expect(limitInForce(quoted, 'account-read', id, nowMs).limit, id).toBe(5);
    }
    for (const id of ['1234', 'true', '7e', '1_000', '2026-11-20', '12:30']) {
      expect(limitInForce(limitsOf(override(id)), 'account-read', id, nowMs).limit, id).toBe(5);
    }
    expect(
      problemsOf(`${override('007')}  2: { account-read: 5 }\n  010: { account-read: 5 }\n`),
    ).toHaveLength(2);
  });

  test('an override changes the buckets that it names, of the one that it names', () => {
    const limits = limitsOf('accounts: { big: { account-read: 5000 } }');
    expect(limitInForce(limits, 'account-read', 'big', nowMs)).toMatchObject({
      limit: 5000,
      shadowLimit: undefined,
    });
    expect(limitInForce(limits, 'account-write', 'big', nowMs).limit).toBe(250);
    expect(limitInForce(limits, 'account-read', 'other', nowMs).limit).toBe(500);
  });

  test('a Person is overridden as a principal, and an Account has no buckets of Persons', () => {
    const limits = limitsOf('principals: { person_1: { person-read: 900, until: "2026-11-21" } }');
    expect(limitInForce(limits, 'person-read', 'person_1', nowMs).limit).toBe(900);
    expect(limitInForce(limits, 'person-read', 'person_2', nowMs).limit).toBe(500);
    expect(limitInForce(limits, 'person-write', 'person_1', nowMs).limit).toBe(250);
    expect(limitInForce(limits, 'person-read', 'person_1', Date.parse('2026-11-22')).limit).toBe(500);
    expect(problemsOf('accounts: { acct_1: { person-read: 900 } }')).toHaveLength(1);
    expect(problemsOf('principals: { person_1: { person-read: none } }')).toHaveLength(1);
  });

  test('an Organization can be without a limit, by override and by default', () => {
    const limits = limitsOf(`
defaults: { organization-write: none }
organizations: { free: { organization-read: none }, held: { organization-write: 7 } }`);
    expect(limitInForce(limits, 'organization-read', 'free', nowMs).limit).toBeUndefined();
    expect(limitInForce(limits, 'organization-write', 'any', nowMs).limit).toBeUndefined();
    expect(limitInForce(limits, 'organization-write', 'held', nowMs).limit).toBe(7);
  });

  test('an id of the object prototype has no overrides', () => {
    expect(limitInForce(limitsOf(''), 'account-read', 'constructor', nowMs).limit).toBe(500);
    expect(
      limitInForce(limitsOf('accounts: {"__proto__": {account-read: 3}}'), 'account-read', '__proto__', nowMs)
        ?.limit,
    ).toBe(3);
  });

  test.each([
    ['2026-11-20', '2026-11-20T23:59:59.999Z', '2026-11-21T00:00:00.000Z'],
    ['2026-11-20T18:00:00Z', '2026-11-20T17:59:59.999Z', '2026-11-20T18:00:00.000Z'],
    ['2026-11-20T18:00:00+02:00', '2026-11-20T15:59:59.999Z', '2026-11-20T16:00:00.000Z'],
    ['2026-11-20T18:00', '2026-11-20T17:59:59.999Z', '2026-11-20T18:00:00.000Z'],
  ])('an override until %s is in force up to its last moment', (until, last, over) => {
    const limits = limitsOf(
      `organizations: { o: { organization-read: 9000, organization-write: none, until: ${until} } }`,
    );
    expect(limitInForce(limits, 'organization-read', 'o', Date.parse(last)).limit).toBe(9000);
    expect(limitInForce(limits, 'organization-write', 'o', Date.parse(last)).limit).toBeUndefined();
    expect(limitInForce(limits, 'organization-read', 'o', Date.parse(over)).limit).toBe(2000);
    expect(limitInForce(limits, 'organization-write', 'o', Date.parse(over)).limit).toBe(1000);
  });

  test.each(['"9999-12-31"', '9999-12-31T23:30:00-02:00'])(
    'an override until %s ends within the last year that messages can have',
    (until) => {
      const given = limitsOf(`accounts: { a: { account-read: 9, until: ${until} } }`).accounts.get('a');
      expect(given?.limits['account-read']?.untilMs).toBe(Date.parse('9999-12-31T23:59:59.999Z'));
    },
  );

  test('with a shadow override the default is in force, with a shadow default no limit; a bucket can expire before its override', () => {
    const limits = limitsOf(`
defaults: { person-read: { limit: 5, shadow: true } }
accounts:
  a:
    account-read: { limit: 10, shadow: true, until: "2026-11-19" }
    account-write: { limit: 20, shadow: true }
    until: "2026-11-30"`);
    const inForce = (bucket: string, id: string) => limitInForce(limits, bucket, id, nowMs);
    expect(inForce('person-read', 'p')).toMatchObject({ limit: undefined, shadowLimit: 5 });
    expect(inForce('account-read', 'a')).toMatchObject({ limit: 500, shadowLimit: undefined });
    expect(inForce('account-write', 'a')).toMatchObject({ limit: 250, shadowLimit: 20 });
  });

  test('all problems are reported together', () => {
    expect(
      problemsOf(`windowSeconds: 0
defaults: { account-read: none, acount-write: 1, person-write: 1.5 }
accounts:
  a: { organization-read: 5 }
  b: { account-read: 0 }
  c: { account-read: { limit: 5, shadw: true } }
  d: { account-read: { shadow: true } }
organizations: { o: { organization-read: nne } }
`),
    ).toEqual([
      'limits.yaml:1: windowSeconds: must be a whole number from 1 to 86400, is 0',
      'limits.yaml:2: defaults.acount-write: unknown key "acount-write": did you mean "account-write"?',
      'limits.yaml:2: defaults.account-read: must be a whole number from 1 to 1000000000, or { limit, shadow }, is "none"',
      'limits.yaml:2: defaults.person-write: must be a whole number from 1 to 1000000000, or { limit, shadow }, is 1.5',
      'limits.yaml:4: accounts.a.organization-read: unknown key "organization-read": expected one of account-read, account-write, until, periodStartsOn, plan',
      'limits.yaml:5: accounts.b.account-read: must be a whole number from 1 to 1000000000, or { limit, shadow, until }, is 0',
      'limits.yaml:6: accounts.c.account-read.shadw: unknown key "shadw": did you mean "shadow"?',
      'limits.yaml:7: accounts.d.account-read.limit: is missing: expected a whole number from 1 to 1000000000',
      'limits.yaml:8: organizations.o.organization-read: must be a whole number from 1 to 1000000000, none, or { limit, shadow, until }, is "nne"',
    ]);
  });

  test('a date that does not exist is refused', () => {
    expect(problemsOf('accounts:\n  a: { account-read: 5, until: 2026-02-30 }')).toEqual([
      'limits.yaml:2: accounts.a.until: "2026-02-30" is not a calendar date',
    ]);
    expect(
      problemsOf('accounts: { a: { account-read: 5, until: 2026-13-01 }, b: { acount-read: 5 } }'),
    ).toHaveLength(2);
    expect(problemsOf('accounts: { a: { account-read: 5, until: friday } }')[0]).toContain(
      'such as "2030-01-31"',
    );
  });

  test('an address is written as its bucket is named', () => {
    const addresses = (keys: string) => problemsOf(`addresses: { ${keys} }`);
    expect(addresses('203.0.113.7: { address-read: 5 }, "2001:db8::/64": { address-write: 5 }')).toEqual([]);
    const expected = 'must be an IPv4 address or an IPv6 /64 network';
    expect(addresses('"2001:DB8::1": { address-read: 5 }, "::ffff:192.0.2.1": {}, office: {}')).toEqual([
      `limits.yaml:1: addresses["2001:DB8::1"]: ${expected}: write "2001:db8::/64"`,
      `limits.yaml:1: addresses["::ffff:192.0.2.1"]: ${expected}: write "192.0.2.1"`,
      `limits.yaml:1: addresses.office: ${expected}: such as 203.0.113.7 or 2001:db8:0:1::/64`,
    ]);
  });

  test('a duplicate key is refused with its line', () => {
    expect(problemsOf('accounts:\n  a: { account-read: 1 }\n  a: { account-read: 2 }')).toEqual([
      'limits.yaml:3: is not valid YAML: the key "a" is written twice',
    ]);
  });
});

describe('a cost above a limit', () => {
  const operations = [
    { id: 'createSession', kind: 'write', cost: 10, access: 'caller' },
    { id: 'submitTaxForm', kind: 'write', cost: 5, access: 'caller' },
    { id: 'listFactors', kind: 'read', cost: 3, access: 'person' },
    { id: 'signUp', kind: 'write', cost: 4, access: 'public' },
  ] as const;
  const problems = (text: string) =>
    checkCosts(operations, limitsOf(text), placesIn('limits.yaml')).map(formatProblem);

  test('is refused with the operation and the bucket, in defaults and in overrides', () => {
    expect(
      problems(`
defaults: { account-write: 9, person-read: 2, address-write: 3 }
accounts: { a: { account-write: 10 }, b: { account-write: 4 } }
organizations: { o: { organization-write: 1, organization-read: 1 } }`),
    ).toEqual([
      'limits.yaml: defaults.account-write: the limit 9 is below the cost 10 of operation createSession, which could never be admitted: raise the limit to at least 10',
      'limits.yaml: defaults.person-read: the limit 2 is below the cost 3 of operation listFactors, which could never be admitted: raise the limit to at least 3',
      expect.stringContaining('defaults.address-write: the limit 3 is below the cost 4 of operation signUp'),
      expect.stringContaining('accounts.b.account-write: the limit 4 is below the cost 10'),
      expect.stringContaining('organizations.o.organization-write: the limit 1 is below the cost 10'),
    ]);
  });

  test('is not refused where it is a shadow limit, in a default, a plan, an override or a further limit', () => {
    const text = `
defaults: { account-write: { limit: 9, shadow: true } }
limits: { minute: { per: account, points: 9, window: 1m, shadow: true } }
plans: { small: { account-write: { limit: 5, shadow: true } } }
accounts: { a: { account-write: { limit: 4, shadow: true } }, b: { account-write: 4 } }`;
    expect(problems(text)).toEqual([
      expect.stringContaining('accounts.b.account-write: the limit 4 is below'),
    ]);
    const low = findLowShadows(operations, limitsOf(text));
    expect(low.map((one) => formatProblem(lowShadowWarning(one, placesIn('limits.yaml'))))).toEqual([
      'limits.yaml: defaults.account-write: the shadow limit 9 is below the cost 10 of operation createSession: it reports that it would refuse every such request',
      expect.stringContaining('limits.minute.points: the shadow limit 9 is below the cost 10'),
      expect.stringContaining('plans.small.account-write: the shadow limit 5'),
      expect.stringContaining('accounts.a.account-write: the shadow limit 4'),
    ]);
  });

  test('does not concern buckets that the operation is not charged to', () => {
    expect(
      problems(
        'defaults: { account-read: 1, person-write: 1, organization-read: 1, organization-write: none }',
      ),
    ).toEqual([]);
  });
});

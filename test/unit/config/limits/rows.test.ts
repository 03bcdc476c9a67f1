import { describe, expect, test } from 'vitest';
import { checkCosts, placesIn } from '../../../../src/config/checks/costs.ts';
import { checkSelections } from '../../../../src/config/checks/selections.ts';
import { parseLimits, parseOverrides } from '../../../../src/config/files/limits/parse-limits.ts';
import { ConfigError, formatProblem } from '../../../../src/config/problem.ts';
import { rowNamed, startOfMonths } from '../../../../src/domain/limits/limits.ts';

const limitsOf = (text: string) => parseLimits(text, 'limits.yaml');

function problemsOf(read: () => unknown): readonly string[] {
  try {
    read();
  } catch (error) {
    if (error instanceof ConfigError) return error.problems.map(formatProblem);
    throw error;
  }
  return [];
}

const EXAMPLE = `
limits:
  account-minute:     { per: account, points: 10000, window: 1m }
  search:             { per: account, points: 25, window: 1s, operations: [searchPayees, "POST /v3/search/**"], tags: [search] }
  key-hour:           { per: principal, requests: 3600, window: 1h, kind: read }
  logins:             { per: address, points: 20, window: 5m, operations: [login] }
  organization-month: { per: organization, points: 20000000, window: 30d }
plans:
  free: { account-read: 50, account-minute: 1000 }
  pro:  { account-read: 2000, account-minute: 100000, organization-month: none }
accounts:
  acct_big: { plan: pro, account-minute: 200000 }
principals: { svc_1: { key-hour: none } }
`;

describe('further limits', () => {
  test('are rows after the rows of the contract', () => {
    const limits = limitsOf(EXAMPLE);
    expect(limits.rows).toHaveLength(13);
    expect(limits.rows.slice(0, 8).every(({ isContract }) => isContract)).toBe(true);
    expect(rowNamed(limits, 'account-minute')).toMatchObject({
      scope: 'account',
      windowSeconds: 60,
      counts: 'points',
    });
    expect(rowNamed(limits, 'key-hour')).toMatchObject({
      scope: 'principal',
      windowSeconds: 3_600,
      counts: 'requests',
      selection: { kind: 'read' },
    });
    expect(rowNamed(limits, 'organization-month')?.windowSeconds).toBe(2_592_000);
    expect(limits.defaults['account-minute']).toEqual({ limit: 10_000, shadow: false });
    expect(limits.plans.get('pro')?.['organization-month']).toEqual({ limit: 'none', shadow: false });
    expect(limits.accounts.get('acct_big')).toEqual({
      plan: { name: 'pro' },
      limits: { 'account-minute': { limit: 200_000, shadow: false } },
    });
  });

  test('have their problems reported beside entries that do not match the schema, each once', () => {
    const text = `
limits:
  a: { per: account, points: 5, period: month, startsOn: 32 }
  b: { per: account, points: 5, period: month, window: 1h }
  c: { per: account, points: 5, period: day, timeZone: Europe/Nowhere }
  d: { points: 100 }
  e: { per: account, points: 5, window: 1m }
plans:
  free: { a: many }
accounts:
  acct_1: { plan: free, e: 10 }
  acct_2: { plan: fre, e: 10 }
  acct_3: { e: 10, until: "2030-02-30" }
`;
    const paths = problemsOf(() => limitsOf(text)).map((one) => one.split(': ')[1]);
    expect(paths).toEqual([
      'limits.a.startsOn',
      'limits.d.per',
      'plans.free.a',
      'limits.b.window',
      'limits.c.timeZone',
      'accounts.acct_2.plan',
      'accounts.acct_3.until',
    ]);
  });

  test('have problems with file, line and path, all in one pass', () => {
    const problems = problemsOf(() =>
      limitsOf(`limits:
  account-read: { per: account, points: 5, window: 1m }
  a: { per: acount, points: 5, window: 1m }
  b: { per: account, window: 1m }
  c: { per: account, points: 5, requests: 5, window: 1m }
  d: { per: account, points: 5, window: 32d }
  e: { per: account, points: 5, window: 90 }
  f-shadow: { per: account, points: 5, window: 1m }
  Big: { per: account, points: 5, window: 1m }
  g: { per: account, points: 0, window: 1m, operations: [], tag: [x] }
  until: { per: account, points: 5, window: 1m }
`),
    );
    expect(problems).toEqual([
      'limits.yaml:3: limits.a.per: must be account, address, organization, principal or service, is "acount"',
      'limits.yaml:7: limits.e.window: must be a time from 1s to 31d, such as 30s, 1m, 24h or 30d (for calendar months, write period: month), is 90',
      'limits.yaml:10: limits.g.tag: unknown key "tag": did you mean "tags"?',
      'limits.yaml:10: limits.g.points: must be a whole number from 1 to 1000000000 (9000000000000000 with a period), or none, is 0',
      'limits.yaml:10: limits.g.operations: must be a list of operations, such as [searchPayees, "POST /v3/search/**"], is an empty list',
      'limits.yaml:2: limits.account-read: this name is taken: give the limit another name',
      'limits.yaml:4: limits.b: has no limit: name one of points, requests and concurrent',
      'limits.yaml:5: limits.c: has 2 limits: name one of points, requests and concurrent',
      'limits.yaml:6: limits.d.window: must be at most 31d, is "32d": such as period: month or period: year',
      'limits.yaml:8: limits.f-shadow: a name must not end in -shadow',
      'limits.yaml:9: limits.Big: a name has at most 40 lower-case letters, digits and single hyphens, and begins with a letter: such as account-minute',
      'limits.yaml:11: limits.until: this name is taken: give the limit another name',
    ]);
    expect(
      problemsOf(() =>
        limitsOf(`limits:
  account-read: { per: account, points: 5, window: 1m }
  b: { per: account, window: 1m }
  c: { per: account, points: 5, requests: 5, window: 1m }
  d: { per: account, points: 5, window: 32d }
  f-shadow: { per: account, points: 5, window: 1m }
  Big: { per: account, points: 5, window: 1m }
  until: { per: account, points: 5, window: 1m }
  force: { per: account, points: 5, window: 1m }
`),
      ),
    ).toEqual([
      'limits.yaml:2: limits.account-read: this name is taken: give the limit another name',
      'limits.yaml:3: limits.b: has no limit: name one of points, requests and concurrent',
      'limits.yaml:4: limits.c: has 2 limits: name one of points, requests and concurrent',
      'limits.yaml:5: limits.d.window: must be at most 31d, is "32d": such as period: month or period: year',
      'limits.yaml:6: limits.f-shadow: a name must not end in -shadow',
      'limits.yaml:7: limits.Big: a name has at most 40 lower-case letters, digits and single hyphens, and begins with a letter: such as account-minute',
      'limits.yaml:8: limits.until: this name is taken: give the limit another name',
      'limits.yaml:9: limits.force: this name is taken: give the limit another name',
    ]);
  });

  test('on concurrent requests have no window, and all others have one', () => {
    const { rows, defaults } = limitsOf(`limits:
  in-flight: { per: account, concurrent: 20, kind: write }
  by-plan: { per: organization, concurrent: none, shadow: true }
`);
    expect(rows.slice(-2)).toEqual([
      {
        name: 'in-flight',
        headerName: 'in-flight',
        scope: 'account',
        counts: 'concurrent',
        windowSeconds: 0,
        selection: { kind: 'write' },
        isContract: false,
      },
      {
        name: 'by-plan',
        headerName: 'by-plan',
        scope: 'organization',
        counts: 'concurrent',
        windowSeconds: 0,
        selection: {},
        isContract: false,
      },
    ]);
    expect(defaults['in-flight']).toEqual({ limit: 20, shadow: false });
    expect(
      problemsOf(() =>
        limitsOf(`limits:
  a: { per: account, concurrent: 5, window: 1m }
  b: { per: account, points: 5 }
  c: { per: account, concurrent: 0 }
  d: { per: account, concurrent: 5, requests: 5, window: 1m }
`),
      ),
    ).toEqual([
      'limits.yaml:4: limits.c.concurrent: must be a whole number from 1 to 1000000000, or none, is 0',
      'limits.yaml:2: limits.a.window: is not allowed here: a limit on concurrent requests has no window: leave it out',
      'limits.yaml:3: limits.b: has no window: such as window: 1m, or period: month',
      'limits.yaml:5: limits.d: has 2 limits: name one of points, requests and concurrent',
    ]);
    expect(
      problemsOf(() =>
        limitsOf(`limits:
  a: { per: account, concurrent: 5, window: 1m }
  b: { per: account, points: 5 }
  d: { per: account, concurrent: 5, requests: 5, window: 1m }
`),
      ),
    ).toEqual([
      'limits.yaml:2: limits.a.window: is not allowed here: a limit on concurrent requests has no window: leave it out',
      'limits.yaml:3: limits.b: has no window: such as window: 1m, or period: month',
      'limits.yaml:4: limits.d: has 2 limits: name one of points, requests and concurrent',
    ]);
  });

  test('can be named only where they are counted', () => {
    expect(
      problemsOf(() =>
        limitsOf(`limits: { minute: { per: account, points: 5, window: 1m } }
organizations: { o: { minute: 5 } }
plans: { pro: { minut: 9, person-read: 5 } }
accounts: { a: { plan: prp } }
`),
      ),
    ).toEqual([
      'limits.yaml:3: plans.pro.minut: unknown key "minut": did you mean "minute"?',
      'limits.yaml:3: plans.pro.person-read: unknown key "person-read": expected one of account-read, account-write, organization-read, organization-write, minute',
      'limits.yaml:2: organizations.o.minute: unknown key "minute": expected one of organization-read, organization-write, until, periodStartsOn, plan',
      'limits.yaml:4: accounts.a.plan: there is no plan "prp": did you mean "pro"?',
    ]);
    expect(problemsOf(() => limitsOf('plans: { pro: {} }\naccounts: { a: { plan: prp } }'))).toEqual([
      'limits.yaml:2: accounts.a.plan: there is no plan "prp": did you mean "pro"?',
    ]);
  });

  test('are five hundred at most', () => {
    const rows = (count: number) =>
      Array.from({ length: count }, (_, n) => `r${n}: { per: account, points: 9, window: 1m }`).join(', ');
    expect(problemsOf(() => limitsOf(`limits: { ${rows(500)} }`))).toEqual([]);
    expect(problemsOf(() => limitsOf(`limits: { ${rows(501)} }`))).toEqual([
      'limits.yaml:1: limits: has 501 limits, and at most 500 are allowed',
    ]);
  });

  test('an overrides file refers to the rows and plans of the limits file', () => {
    const { rows, plans } = limitsOf(EXAMPLE);
    const named = { rows, plans: [...plans.keys()] };
    const text = 'accounts: { a: { account-minute: 5, plan: free, until: "2030-01-01" } }';
    const untilMs = Date.parse('2030-01-02T00:00:00Z');
    expect(parseOverrides(text, 'o.yaml', named).accounts.get('a')).toEqual({
      plan: { name: 'free', untilMs },
      limits: { 'account-minute': { limit: 5, shadow: false, untilMs } },
    });
    expect(problemsOf(() => parseOverrides(text, 'o.yaml'))[0]).toContain('unknown key "account-minute"');
  });
});

const OPERATIONS = [
  {
    id: 'searchPayees',
    method: 'GET',
    path: '/v3/payees',
    kind: 'read',
    cost: 3,
    access: 'caller',
    tags: ['search'],
  },
  {
    id: 'find',
    method: 'POST',
    path: '/v3/search/{what}/deep',
    kind: 'write',
    cost: 2,
    access: 'caller',
    tags: ['search'],
  },
  { id: 'login', method: 'POST', path: '/login', kind: 'write', cost: 1, access: 'public' },
  { id: 'factors', method: 'GET', path: '/me/factors', kind: 'read', cost: 1, access: 'person' },
] as const;

describe('selections', () => {
  const check = (text: string) => {
    const places = placesIn('limits.yaml');
    const limits = limitsOf(text);
    return [...checkCosts(OPERATIONS, limits, places), ...checkSelections(OPERATIONS, limits, places)].map(
      formatProblem,
    );
  };

  test('that select something are valid', () => {
    expect(check(EXAMPLE)).toEqual([]);
  });

  test.each([
    [
      'a: { per: account, points: 9, window: 1m, operations: [serchPayees] }',
      'limits.a.operations.0: no operation is "serchPayees": did you mean "searchPayees"?',
    ],
    [
      'a: { per: account, points: 9, window: 1m, operations: ["DELETE /v3/search/**"] }',
      'limits.a.operations.0: no operation is "DELETE /v3/search/**"',
    ],
    [
      'a: { per: account, points: 9, window: 1m, tags: [serch] }',
      'limits.a.tags: no operation has the tag "serch": did you mean "search"?',
    ],
    [
      'a: { per: account, points: 9, window: 1m, operations: [login] }',
      'limits.a.operations.0: login is public, and charged per address, not per account',
    ],
    [
      'a: { per: account, points: 9, window: 1m, operations: [factors] }',
      'limits.a.operations.0: factors is for Persons only, and charged per principal, not per account',
    ],
    [
      'a: { per: address, points: 9, window: 1m, operations: [find] }',
      'limits.a.operations.0: find is not public, and only public operations are counted by address: per: principal limits each caller',
    ],
    [
      'a: { per: account, points: 9, window: 1m, kind: read, operations: [find] }',
      'limits.a: selects no operation that is charged per account',
    ],
    [
      'a: { per: address, points: 9, window: 1m, kind: read, tags: [search] }',
      'limits.a: selects no operation that is charged per address: per: principal limits each caller',
    ],
    [
      'a: { per: account, points: 1, window: 1m, kind: write }',
      'limits.a.points: the limit 1 is below the cost 2 of operation find, which could never be admitted',
    ],
  ])('%s', (row, problem) => {
    expect(check(`limits: { ${row} }`)).toEqual([expect.stringContaining(problem)]);
  });

  test('a plan and an override below a cost are problems; a limit of requests never is', () => {
    expect(
      check(`limits: { a: { per: account, points: 9, window: 1m }, b: { per: account, requests: 1, window: 1m } }
plans: { free: { a: 2, account-read: 2 } }
accounts: { x: { a: 1 } }`),
    ).toEqual([
      expect.stringContaining('plans.free.account-read: the limit 2 is below the cost 3'),
      expect.stringContaining('plans.free.a: the limit 2 is below the cost 3'),
      expect.stringContaining('accounts.x.a: the limit 1 is below the cost 3'),
    ]);
  });

  test('more than twelve for one operation are one problem', () => {
    const rows = Array.from({ length: 13 }, (_, n) => `r${n}: { per: account, points: 9, window: 1m }`);
    expect(check(`limits: { ${rows.join(', ')} }`)).toEqual([
      expect.stringContaining('limits: operation searchPayees is charged to more than 12 of these limits'),
    ]);
  });
});

describe('limits with a period', () => {
  test('are in UTC, and begin on Mondays and the first of a month, unless the file says otherwise', () => {
    const { rows } = limitsOf(`
limits:
  a: { per: account, points: 9000000000000000, period: month }
  b: { per: account, requests: 1, period: week, timeZone: Europe/Berlin, startsOn: sunday }
  c: { per: account, points: none, period: month, startsOn: 15 }
plans: { pro: { c: 5000000000000 } }
accounts: { acct_1: { a: { limit: 8000000000000000, shadow: true } } }
`);
    expect(rows.slice(-3)).toMatchObject([
      { windowSeconds: 2_678_400, period: { unit: 'month', timeZone: 'UTC', startsOn: 1 } },
      { windowSeconds: 604_800, period: { unit: 'week', timeZone: 'Europe/Berlin', startsOn: 7 } },
      { period: { unit: 'month', timeZone: 'UTC', startsOn: 15 } },
    ]);
  });

  test.each([
    [
      'period: month, window: 1d',
      'limits.a.window: is not allowed beside a period: keep window: 1d or period: month',
    ],
    [
      'window: 59m, durable: true',
      'limits.a.durable: is not allowed here: only limits with a period, or with a window of an hour or longer, are recorded',
    ],
    ['window: 1d, startsOn: 15', 'limits.a.startsOn: is not allowed here: only limits with a period have it'],
    [
      'period: 30d',
      'limits.a.period: must be hour, day, week, month or year (a time such as 30d is a window), is "30d"',
    ],
    [
      'period: month, timeZone: Europe/Berlim',
      'limits.a.timeZone: there is no time zone "Europe/Berlim": did you mean "Europe/Berlin"?',
    ],
    [
      'period: month, startsOn: friday',
      'limits.a.startsOn: is not allowed with period: month: name a day from 1 to 31',
    ],
    [
      'period: week, startsOn: 3',
      'limits.a.startsOn: is not allowed with period: week: name a weekday, such as monday',
    ],
    [
      'period: day, startsOn: 3',
      'limits.a.startsOn: is not allowed with period: day: leave it out, because only weeks and months can begin elsewhere',
    ],
    [
      'period: month, startsOn: 32',
      'limits.a.startsOn: must be a day of the month from 1 to 31, or a weekday such as monday, is 32',
    ],
    ['window: 60d', 'limits.a.window: must be at most 31d, is "60d": such as period: month or period: year'],
    ['kind: read', 'limits.a: has no window: such as window: 1m, or period: month'],
  ])('%s has a problem that says what to write', (text, problem) => {
    const file = `limits:\n  a: { per: account, points: 5, ${text} }\n`;
    expect(problemsOf(() => limitsOf(file))).toEqual([`limits.yaml:2: ${problem}`]);
  });

  test('only they go beyond a billion, and requests in flight have none', () => {
    const file = `limits:
  a: { per: account, points: 1000000001, window: 1d }
  b: { per: account, concurrent: 3, period: day }
`;
    expect(problemsOf(() => limitsOf(file))).toEqual([
      'limits.yaml:2: limits.a.points: must be at most 1000000000, is 1000000001: only limits with a period go beyond it',
      'limits.yaml:3: limits.b.period: is not allowed here: a limit on concurrent requests has no period: leave it out',
    ]);
  });

  test('an owner may have another first day of its months', () => {
    const limits = limitsOf(`
limits: { a: { per: account, points: 5, period: month } }
accounts: { acct_1: { periodStartsOn: 3, until: "2030-01-31", a: 7 } }
organizations: { org_1: { periodStartsOn: 15 } }
`);
    expect(limits.accounts.get('acct_1')).toMatchObject({ periodStartsOn: 3, limits: { a: { limit: 7 } } });
    expect(startOfMonths(limits, 'accounts', 'acct_1', { organization: 'org_1', periodStartsOn: 9 })).toBe(3);
    expect(startOfMonths(limits, 'accounts', 'acct_2', { organization: 'org_1', periodStartsOn: 9 })).toBe(
      15,
    );
    expect(startOfMonths(limits, 'accounts', 'acct_2', { periodStartsOn: 9 })).toBe(9);
    expect(startOfMonths(limits, 'organizations', 'org_2', { account: 'acct_1' })).toBe(undefined);
    expect(problemsOf(() => limitsOf('accounts: { acct_1: { periodStartsOn: 32 } }'))).toEqual([
      'limits.yaml:1: accounts.acct_1.periodStartsOn: must be a whole number from 1 to 31, is 32',
    ]);
  });
});

import { expect, it, onTestFinished } from 'vitest';
import type { Usage } from '../../../src/admin/usage/owner-usage.ts';
import { DECISIONS } from '../../fixtures/decisions.ts';
import { remainingOf, startGateway, type TestGateway } from '../../fixtures/gateway.ts';
import { linesOf } from '../../fixtures/log-lines.ts';

type Options = Parameters<typeof startGateway>[0];
type Rows = Readonly<Record<string, object>>;

async function start(list: readonly object[], limits: Rows, more?: Options): Promise<TestGateway> {
  const decisions = { ...DECISIONS, token: TOKEN };
  const settings = { operations: { list }, log: { level: 'info' }, decisions };
  const gateway = await startGateway({ ...more, limits, settings });
  onTestFinished(() => gateway.close());
  return gateway;
}

const TOKEN = 'a-token-of-the-decisions-port';

/** What the decisions port answers. */
interface Answer {
  readonly status: number;
  readonly receipt?: string;
  readonly buckets: readonly { readonly bucket: string; readonly remaining: number }[];
}

async function post({ decisionsUrl }: TestGateway, path: string, body: object): Promise<Answer> {
  const headers = { Authorization: `Bearer ${TOKEN}` };
  const response = await fetch(decisionsUrl + path, { method: 'POST', headers, body: JSON.stringify(body) });
  return (await response.json()) as Answer;
}

const PEOPLE = [
  { method: 'GET', path: '/people/{id}', id: 'readPerson', personOnly: true },
  { method: 'GET', path: '/people/export', id: 'exportPeople', cost: 5 },
];
const EXPORTS = {
  limits: { exports: { per: 'account', points: 20, window: '1m', operations: ['exportPeople'] } },
};

it('what a Person may run as an operation of any caller is charged to its Account as well', async () => {
  const gateway = await start(PEOPLE, EXPORTS);
  const both = await gateway.send('GET', '/people/export.csv', { token: 'person' });
  expect(both.headers.get('RateLimit-Policy')).toBe(
    '"account-read";q=20;w=60, "account-write";q=20;w=60, "person-read";q=10;w=60, "person-write";q=10;w=60, "organization-read";q=30;w=60, "organization-write";q=30;w=60, "exports";q=20;w=60',
  );
  expect(remainingOf(both)).toEqual({
    'account-read': 15,
    'person-read': 5,
    'organization-read': 25,
    exports: 15,
  });
  const own = await gateway.send('GET', '/people/7', { token: 'person' });
  expect(remainingOf(own)).toEqual({ 'account-read': 4 });
  expect((await gateway.send('GET', '/people/export.csv')).status).toBe(403);
  const usage = await fetch(`${gateway.adminUrl}/usage/accounts/acct_1`);
  expect(await usage.json()).toMatchObject({ recent: { '10m': { points: 5, requests: 1 } } });
  const admitted = linesOf(gateway, 'request').filter(({ outcome }) => outcome === 'admitted');
  expect(admitted.map(({ path, personOnly = false }) => [path, personOnly])).toEqual([
    ['/people/export.csv', false],
    ['/people/7', true],
  ]);
});

it('of an Account in another Organization, the same buckets are charged as by its own callers', async () => {
  const identities = {
    principals: {
      person_1: { type: 'Person', account: 'acct_1', actsFor: ['acct_4'] },
      svc_1: { type: 'ServiceAccount', account: 'acct_4' },
    },
    tokens: { person: 'person_1', service: 'svc_1' },
  };
  const gateway = await start(PEOPLE, EXPORTS, { identities });
  await gateway.send('GET', '/people/export.csv', { token: 'person', account: 'acct_4' });
  const plain = await gateway.send('GET', '/people/export');
  expect(remainingOf(plain)).toEqual({ 'account-read': 10, 'organization-read': 20, exports: 10 });
});

const REPORTS = [
  { method: 'GET', path: '/{name}', id: 'named', cost: 10 },
  { method: 'GET', path: '/reports', id: 'reports', cost: 1 },
];
const FEW_REPORTS = {
  limits: { reports: { per: 'account', points: 5, window: '1m', operations: ['reports'] } },
};

it.each([
  [0, 5],
  [3, 0],
  [8, 0],
])(
  'a held decision that is settled at %i leaves %i of a limit of 5 that it had used whole',
  async (cost, left) => {
    const gateway = await start(REPORTS, FEW_REPORTS);
    const question = { account: 'acct_1', method: 'GET', path: '/reports.json', hold: '60s' };
    const { receipt } = await post(gateway, '/decide', question);
    const { buckets } = await post(gateway, '/settle', { receipt, cost });
    expect(buckets.find(({ bucket }) => bucket === 'reports')).toMatchObject({ remaining: left });
  },
);

it('what it costs above its reservation counts in a limit that it had used whole, as by its other name', async () => {
  const gateway = await start(REPORTS, FEW_REPORTS);
  const usedAfter = async (path: string, account: string) => {
    const { receipt } = await post(gateway, '/decide', { account, method: 'GET', path, hold: '60s' });
    await post(gateway, '/settle', { receipt, cost: 12 });
    const answer = await fetch(`${gateway.adminUrl}/usage/accounts/${account}`);
    const { buckets } = (await answer.json()) as Pick<Usage, 'buckets'>;
    return buckets.find(({ bucket }) => bucket === 'reports')?.used;
  };
  expect(await usedAfter('/reports', 'acct_1')).toBe(12);
  expect(await usedAfter('/reports.json', 'acct_2')).toBe(12);
});

it('a limit below the highest cost is used whole, and refuses for a window at most', async () => {
  const gateway = await start(REPORTS, FEW_REPORTS);
  const first = await gateway.send('GET', '/reports.json');
  expect(first.status).toBe(200);
  expect(remainingOf(first)).toEqual({ 'account-read': 10, 'organization-read': 20, reports: 0 });
  const second = await gateway.send('GET', '/reports.json');
  expect(second.status).toBe(429);
  expect(await second.json()).toMatchObject({ extensions: { bucket: 'reports', limit: 5, costPoints: 10 } });
});

/** Twelve limits on one operation, which is the most. */
function twelveOn(operation: string): Rows {
  const of = (index: number) =>
    [
      `${operation}-${index}`,
      { per: 'account', requests: 5, window: '1m', operations: [operation] },
    ] as const;
  return Object.fromEntries(Array.from({ length: 12 }, (_, index) => of(index)));
}

it('no path has so many limits that none of them is charged', async () => {
  const list = [
    { method: 'GET', path: '/{name}', id: 'first' },
    { method: 'GET', path: '/reports', id: 'second' },
    { method: 'GET', path: '/reports.a', id: 'third' },
  ];
  const rows = { ...twelveOn('first'), ...twelveOn('second'), ...twelveOn('third') };
  // The most limits that are tried out, beside the limits in force.
  const shadows = Object.fromEntries(Object.keys(rows).map((name) => [name, { limit: 4, shadow: true }]));
  const gateway = await start(list, { limits: rows, accounts: { acct_1: shadows } });
  const usage = async () => {
    const answer = await fetch(`${gateway.adminUrl}/usage/accounts/acct_1`);
    return (await answer.json()) as Pick<Usage, 'buckets' | 'storeProblem'>;
  };
  expect(await usage()).toMatchObject({ storeProblem: null });

  const ofTwo = await gateway.send('GET', '/reports.json');
  expect([ofTwo.status, ofTwo.headers.get('Service-RateLimit-Mode')]).toEqual([200, null]);
  const { buckets } = await usage();
  const usedOf = (name: string) => buckets.find((one) => one.bucket === name && !one.shadow)?.used;
  expect(['account-read', 'first-0', 'second-11', 'third-0'].map(usedOf)).toEqual([1, 1, 1, 0]);

  const ofThree = await gateway.send('GET', '/reports.a.b');
  expect(ofThree.status).toBe(400);
  expect(gateway.upstream.seen.map(({ url }) => url)).toEqual(['/reports.json']);
  await expect
    .poll(() => linesOf(gateway, 'request').map(({ path, status }) => [path, status]))
    .toEqual([
      ['/reports.json', 200],
      ['/reports.a.b', 400],
    ]);

  const priced = { account: 'acct_1', method: 'GET', cost: 1 };
  const asked = await Promise.all(
    ['/reports.json', '/reports.a.b'].map((path) => post(gateway, '/decide', { ...priced, path })),
  );
  expect(asked.map(({ status }) => status)).toEqual([200, 400]);
  expect((await usage()).buckets.find(({ bucket }) => bucket === 'first-0')).toMatchObject({ used: 2 });
});

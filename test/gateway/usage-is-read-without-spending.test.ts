import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import type { BucketUsage, Usage } from '../../src/admin/usage/owner-usage.ts';
import type { UsageOptions } from '../../src/commands/past-usage.ts';
import { usage } from '../../src/commands/usage.ts';
import { WINDOW_SECONDS } from '../fixtures/configuration.ts';
import { remainingOf, startGateway, type TestGateway } from '../fixtures/gateway.ts';
import { sharedRedisUrl, uniquePrefix } from '../fixtures/redis-url.ts';
import { type CommandHere, runHere } from '../fixtures/run-here.ts';

type Options = Parameters<typeof startGateway>[0];

async function start(options: Options = {}): Promise<TestGateway> {
  const gateway = await startGateway(options);
  onTestFinished(() => gateway.close());
  return gateway;
}

const redis = (keyPrefix = uniquePrefix()) => ({
  kind: 'redis',
  url: sharedRedisUrl(),
  keyPrefix,
  deadlineMs: 5000,
});

async function read(gateway: TestGateway, path: string): Promise<Usage> {
  const response = await fetch(`${gateway.adminUrl}/usage/${path}`);
  expect(response.status, path).toBe(200);
  return (await response.json()) as Usage;
}

function bucketIn({ buckets }: Usage, name: string, isShadow = false): BucketUsage {
  const found = buckets.find(({ bucket, shadow }) => bucket === name && shadow === isShadow);
  if (found === undefined) throw new Error(`${name} is not one of ${JSON.stringify(buckets)}`);
  return found;
}

/** The counts of the last minutes, once the gateway has seen its responses end. */
async function untilCounted(gateway: TestGateway, path: string, requests: number): Promise<Usage> {
  await expect.poll(async () => (await read(gateway, path)).recent['10m'].requests).toBe(requests);
  return read(gateway, path);
}

describe.each([
  ['in memory', () => ({})],
  ['in Redis', redis],
])('usage counted %s', (_name, store) => {
  it('is what the RateLimit header says, and reading it spends nothing', async () => {
    const gateway = await start({ store: store() });
    const first = await gateway.send('GET', '/v3/things');
    for (let round = 0; round < 3; round++) await read(gateway, 'accounts/acct_1');
    const second = await gateway.send('GET', '/v3/reports');
    const shown = await read(gateway, 'accounts/acct_1');

    const left = (response: Response) => remainingOf(response)?.['account-read'];
    expect([left(first), left(second)]).toEqual([19, 9]);
    expect(shown).toMatchObject({
      scope: 'account',
      id: 'acct_1',
      organization: 'org_1',
      storeProblem: null,
    });
    expect(
      shown.buckets.map(({ bucket, owner, used, remaining }) => [bucket, owner, used, remaining]),
    ).toEqual([
      ['account-read', 'acct_1', 11, 9],
      ['account-write', 'acct_1', 0, 20],
      ['organization-read', 'org_1', 11, 19],
      ['organization-write', 'org_1', 0, 30],
    ]);
  });

  it('shows when the first points return and when the bucket is full', async () => {
    const gateway = await start({ store: store() });
    await gateway.send('GET', '/v3/things');
    const { nextPointsAfterSeconds, resetAfterSeconds } = bucketIn(
      await read(gateway, 'accounts/acct_1'),
      'account-read',
    );
    const unused = bucketIn(await read(gateway, 'accounts/acct_1'), 'account-write');
    expect(nextPointsAfterSeconds).toBeGreaterThan(0);
    expect(nextPointsAfterSeconds).toBeLessThanOrEqual(WINDOW_SECONDS);
    expect(resetAfterSeconds).toBeGreaterThanOrEqual(nextPointsAfterSeconds ?? Number.NaN);
    expect(unused).toMatchObject({ nextPointsAfterSeconds: 0, resetAfterSeconds: 0 });
  });
});

it('replicas show one count of each bucket', async () => {
  const store = redis();
  const gateways = [await start({ store }), await start({ store })] as const;
  await gateways[0].send('GET', '/v3/reports');
  await gateways[1].send('GET', '/v3/things');
  for (const gateway of gateways) {
    expect(bucketIn(await read(gateway, 'accounts/acct_1'), 'account-read').used).toBe(11);
  }
});

it('points above a limit that was lowered are shown, and nothing is left', async () => {
  const store = redis();
  const before = await start({ store });
  await before.send('GET', '/v3/reports');
  await before.send('GET', '/v3/things');
  const after = await start({ store, limits: { accounts: { acct_1: { 'account-read': 10 } } } });
  expect(bucketIn(await read(after, 'accounts/acct_1'), 'account-read')).toMatchObject({
    limit: 10,
    used: 11,
    remaining: 0,
  });
});

it('each limit comes with its source and its line', async () => {
  const gateway = await start({
    limits: {
      accounts: {
        acct_1: {
          'account-read': { limit: 15, until: '2999-01-01T00:00:00Z' },
          'account-write': { limit: 7, shadow: true },
        },
      },
    },
  });
  const shown = await read(gateway, 'accounts/acct_1');
  const lineAt = async ({ writtenAt }: BucketUsage) => {
    const [, file = '', line] = /^(.*limits\.yaml):(\d+)$/.exec(writtenAt ?? '') ?? [];
    return (await readFile(file, 'utf8')).split('\n')[Number(line) - 1]?.trim();
  };

  const read1 = bucketIn(shown, 'account-read');
  expect(read1).toMatchObject({ limit: 15, source: 'override', until: '2999-01-01T00:00:00.000Z' });
  expect(await lineAt(read1)).toBe('"account-read": {');
  const write = bucketIn(shown, 'account-write');
  expect(write).toMatchObject({ limit: 20, source: 'default', until: null });
  expect(await lineAt(write)).toBe('"account-write": 20,');
  const shadow = bucketIn(shown, 'account-write', true);
  expect(shadow).toMatchObject({ limit: 7, source: 'override', remaining: 7 });
  expect(await lineAt(shadow)).toBe('"account-write": {');
});

it('the last minutes show points, refusals and the operations that spent most', async () => {
  const gateway = await start();
  for (const path of ['/v3/things', '/v3/reports', '/v3/reports']) await gateway.send('GET', path);
  await gateway.send('POST', '/v3/reports');
  const { recent, operations } = await untilCounted(gateway, 'accounts/acct_1', 4);
  expect(recent['10m']).toEqual({ points: 18, requests: 4, refused: 1 });
  expect(operations).toEqual([
    { operation: 'reportRead', points: 10, requests: 2, refused: 1 },
    { operation: 'reportWrite', points: 7, requests: 1, refused: 0 },
    { operation: 'listThings', points: 1, requests: 1, refused: 0 },
  ]);
  expect((await read(gateway, 'organizations/org_1')).recent['10m'].points).toBe(18);
});

it('Organizations and Persons have their own buckets', async () => {
  const gateway = await start({ store: redis() });
  await gateway.send('GET', '/v3/things', { account: 'acct_2', token: 'person' });
  await gateway.send('GET', '/v3/mfa-factors', { token: 'person', account: 'acct_2' });
  const used = ({ buckets }: Usage) => buckets.map((bucket) => [bucket.bucket, bucket.used]);
  expect(used(await read(gateway, 'organizations/org_1'))).toEqual([
    ['organization-read', 1],
    ['organization-write', 0],
  ]);
  expect(used(await read(gateway, 'persons/person_1'))).toEqual([
    ['person-read', 1],
    ['person-write', 0],
  ]);
});

describe('where nothing has been sent', () => {
  let gateway: TestGateway;
  beforeAll(async () => {
    gateway = await startGateway();
  });
  afterAll(() => gateway.close());

  it('an Account that nobody knows is a 404, and any id is only an id', async () => {
    for (const id of ['acct_none', '..%2F..%2Flivez', '%3Cscript%3E', 'x'.repeat(900)]) {
      const response = await fetch(`${gateway.adminUrl}/usage/accounts/${id}`);
      expect(response.status, id).toBe(404);
      expect(response.headers.get('content-type')).toContain('application/json');
      expect(response.headers.get('x-content-type-options')).toBe('nosniff');
      expect(await response.json()).toMatchObject({
        code: 'unknown',
        nearest: id === 'acct_none' ? expect.anything() : [],
      });
    }
  });

  it.each([
    ['accounts/acct_1?organization=org_2', 'Account acct_1 belongs to Organization org_1, not to org_2.'],
    ['persons/person_1?organization=org_2', 'Account acct_1 belongs to Organization org_1, not to org_2.'],
    ['persons/person_1?account=acct_2', 'Person person_1 belongs to Account acct_1, not to acct_2.'],
    ['services/svc_org?organization=org_2', 'belongs to Organization org_1, not to org_2.'],
  ])('another owner than the files name is refused: %s', async (path, error) => {
    const answer = await fetch(`${gateway.adminUrl}/usage/${path}`);
    expect([answer.status, await answer.json()]).toEqual([400, { error: expect.stringContaining(error) }]);
    const right = path.replace('org_2', 'org_1').replace('acct_2', 'acct_1');
    expect(await read(gateway, right)).toMatchObject({ organization: 'org_1', isKnown: true });
  });
});

it('without its store it still shows limits and their sources', async () => {
  const gateway = await start({ store: { kind: 'redis', url: 'redis://127.0.0.1:1' } });
  const shown = await read(gateway, 'accounts/acct_1');
  expect(shown.storeProblem).not.toBeNull();
  expect(bucketIn(shown, 'account-read')).toMatchObject({ limit: 20, source: 'default', used: null });
});

describe('weir usage', () => {
  const run = (id: string, options: UsageOptions): Promise<CommandHere> => runHere(() => usage(id, options));

  it('prints a table, or the same document as the admin port', async () => {
    const gateway = await start();
    await gateway.send('GET', '/v3/things');
    await untilCounted(gateway, 'accounts/acct_1', 1);
    const { stdout } = await run('acct_1', { url: gateway.adminUrl });
    expect(stdout).toMatch(/^account acct_1 of organization org_1\n/);
    expect(stdout).toMatch(
      /account-read +20 in 1 min +1 +19 +[\d.]+ s +[\d.]+ s +default, \S+limits\.yaml:\d+\n/,
    );
    expect(stdout).toMatch(/10m +1 +1 +0\n/);
    expect(stdout).toMatch(/listThings +1 +1 +0\n/);
    const json = await run('acct_1', { url: gateway.adminUrl, json: true });
    expect(JSON.parse(json.stdout)).toMatchObject({ id: 'acct_1', recent: { '10m': { points: 1 } } });
    const person = await run('person_1', { url: gateway.adminUrl, scope: 'person' });
    expect(person.stdout).toMatch(/person-read +10 in 1 min +0 +10/);
  });

  it.each([
    ['org_1', 'organization'],
    ['person_1', 'person'],
    ['203.0.113.7', 'address'],
  ])('finds whose id %s is', async (id, scope) => {
    const gateway = await start();
    expect((await run(id, { url: gateway.adminUrl })).stdout).toMatch(new RegExp(`^${scope} ${id}`));
  });

  it.each([
    [{ csv: true }, '--csv takes a --period, such as --period 2026-11.'],
    [{ timeZone: 'Europe/Berlin' }, '--time-zone takes a --period, such as --period 2026-11.'],
    [{ startsOn: '15' }, '--starts-on takes a --period, such as --period 2026-11.'],
    [{ csv: true, json: true, period: '2026-11' }, '--csv and --json cannot be combined.'],
  ])('refuses %j', async (options, failure) => {
    expect((await run('acct_1', { url: 'http://127.0.0.1:1', ...options })).failure).toBe(failure);
  });

  it('says what is wrong', async () => {
    const gateway = await start();
    const failure = async (id: string, options: UsageOptions) => (await run(id, options)).failure;
    expect(await failure('acct_none', { url: gateway.adminUrl })).toMatch(
      /404: There is no account acct_none\./,
    );
    expect(await failure('10.0.0.0/8', { url: gateway.adminUrl })).toMatch(
      /400: 10\.0\.0\.0\/8 is a range of addresses\./,
    );
    expect(await failure('acct_1', { url: 'http://127.0.0.1:2' })).toMatch(/does not answer: \S+\. Is it/);
    expect(await failure('acct_1', {})).toMatch(/^Name a gateway with --url or/);
    expect(await failure('acct_1', { url: gateway.adminUrl, scope: 'team' })).toMatch(
      /^--scope takes account/,
    );
  });
});

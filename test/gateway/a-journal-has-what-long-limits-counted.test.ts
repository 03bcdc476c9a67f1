import pg from 'pg';
import { afterEach, describe, expect, inject, test } from 'vitest';
import { createDatabase } from '../../platform/test/fixtures/postgres.ts';
import { usage } from '../../src/commands/usage.ts';
import { startGateway, type TestGateway } from '../fixtures/gateway.ts';
import { sharedRedisUrl, uniquePrefix } from '../fixtures/redis-url.ts';
import { runHere } from '../fixtures/run-here.ts';

const postgresUrl = inject('postgresUrl');

const open: TestGateway[] = [];
afterEach(async () => {
  for (const gateway of open.splice(0)) await gateway.close();
});

const LIMITS = {
  windowSeconds: 1,
  limits: {
    'account-day': { per: 'account', points: 12, window: '24h' },
    'organization-month': { per: 'organization', points: 1_000_000, period: 'month' },
    'account-hidden': { per: 'account', points: 1_000, window: '24h', durable: false },
    'account-short': { per: 'account', points: 1_000, window: '59m' },
  },
};

const TODAY = new Date().toISOString().slice(0, 10);

async function start(settings: Record<string, unknown>): Promise<TestGateway> {
  const gateway = await startGateway({ limits: LIMITS, settings });
  open.push(gateway);
  return gateway;
}

/** Sends requests to the replicas in turn, and counts the responses. */
async function sendTwenty(replicas: readonly TestGateway[]) {
  const statuses: (number | undefined)[] = [];
  for (let count = 0; count < 20; count++)
    statuses.push((await replicas[count % replicas.length]?.send('GET', '/v3/things'))?.status);
  const refused = statuses.filter((status) => status === 429).length;
  return { refused, admitted: statuses.length - refused };
}

const readFrom = async (gateway: TestGateway, path: string, headers = {}) =>
  fetch(`${gateway.adminUrl}${path}`, { headers });

describe.skipIf(postgresUrl === undefined)('a journal', () => {
  test.each([['memory'], ['redis']])('has the sums of the access log, of all replicas: %s', async (kind) => {
    const url = await createDatabase(postgresUrl ?? '');
    const keyPrefix = uniquePrefix();
    const store =
      kind === 'memory' ? { kind, keyPrefix } : { kind, keyPrefix, url: sharedRedisUrl(), deadlineMs: 5_000 };
    const settings = { store, journal: { url, flushMs: 100 } };
    const replicas =
      kind === 'memory' ? [await start(settings)] : [await start(settings), await start(settings)];
    const { admitted, refused } = await sendTwenty(replicas);
    expect(refused).toBeGreaterThan(0);
    const [first] = replicas;
    if (first === undefined) throw new Error('no gateway');
    await expect
      .poll(async () => (await readFrom(first, `/usage/accounts/acct_1?period=${TODAY}`)).json())
      .toMatchObject({
        scope: 'account',
        id: 'acct_1',
        limits: [{ limit: 'account-day', requests: admitted, refused }],
      });
    const organization = await readFrom(first, `/usage/organizations/org_1?period=${TODAY.slice(0, 7)}`);
    expect(await organization.json()).toMatchObject({
      limits: [{ limit: 'organization-month', requests: admitted, refused: 0 }],
      days: [{ day: TODAY, limit: 'organization-month' }],
    });
    const printed = (id: string, options = {}) =>
      runHere(() => usage(id, { url: first.adminUrl, period: TODAY.slice(0, 7), ...options }));
    expect((await printed('org_1')).stdout).toMatch(/^organization org_1 from /);
    expect((await printed('org_1', { csv: true })).stdout).toContain(`\norganization,org_1,${TODAY},`);
    expect((await printed('acct_2')).stdout).toMatch(/^The journal has nothing of acct_2 from /);
    expect((await printed('acct_11')).failure).toMatch(
      /answered 404: There is no account acct_11\. Did you mean .*acct_1/,
    );
  });

  test('of an id that nobody has is a 404 with the nearest ids, unless it has counts of another time', async () => {
    const url = await createDatabase(postgresUrl ?? '');
    const gateway = await start({ store: { kind: 'memory' }, journal: { url, flushMs: 100 } });
    const of = (id: string, period: string) => readFrom(gateway, `/usage/accounts/${id}?period=${period}`);
    const unknown = await of('acct_11', '2026-11');
    expect([unknown.status, await unknown.json()]).toMatchObject([
      404,
      { code: 'unknown', scope: 'account', id: 'acct_11', nearest: expect.arrayContaining(['acct_1']) },
    ]);
    expect(await (await of('acct_1', '2020-01')).json()).toMatchObject({ limits: [], days: [] });
    // Counts of an Account that the files no longer have.
    await gateway.send('GET', '/v3/things');
    await expect.poll(async () => (await of('acct_1', TODAY)).text()).toContain('account-day');
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    await client.query("update weir_journal set owner = 'acct_gone' where owner = 'acct_1'");
    await client.end();
    expect(await (await of('acct_gone', TODAY)).json()).toMatchObject({ limits: [{ requests: 1 }] });
    expect(await (await of('acct_gone', '2020-01')).json()).toMatchObject({ limits: [], days: [] });
  });

  test('is exported as CSV and as NDJSON', async () => {
    const url = await createDatabase(postgresUrl ?? '');
    const gateway = await start({ store: { kind: 'memory' }, journal: { url, flushMs: 100 } });
    await gateway.send('GET', '/v3/things');
    const path = `/usage/export?period=${TODAY.slice(0, 4)}`;
    await expect.poll(async () => (await readFrom(gateway, path)).text()).toContain('organization,org_1,');
    const csv = await readFrom(gateway, path);
    expect(csv.headers.get('Content-Type')).toContain('text/csv');
    const [head, ...rows] = (await csv.text()).trim().split('\r\n');
    expect(head).toBe('scope,id,day,operation,limit,points,requests,refused');
    expect(rows).toHaveLength(2);
    const ndjson = await readFrom(gateway, path, { Accept: 'application/x-ndjson' });
    const lines = (await ndjson.text())
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(lines).toMatchObject([
      { scope: 'account', requests: 1 },
      { scope: 'organization', requests: 1 },
    ]);
  });

  test.each([
    ['2026-13', 'period takes'],
    ['2026-02-30', 'period takes'],
    ['0001-01', 'period takes'],
    ['', 'period takes'],
    ['November', 'period takes'],
    ['2026-11&timeZone=Mars', 'timeZone takes'],
    ['2026-11&timeZone=', 'timeZone takes'],
    ['2026-11&startsOn=32', 'startsOn takes'],
    ['2026-11-01&startsOn=2', 'startsOn only'],
  ])('is not asked for a period such as %s', async (period, message) => {
    const url = await createDatabase(postgresUrl ?? '');
    const gateway = await start({ store: { kind: 'memory' }, journal: { url } });
    for (const path of ['/usage/accounts/acct_1', '/usage/export']) {
      const answer = await readFrom(gateway, `${path}?period=${period}`);
      expect([answer.status, await answer.text()]).toEqual([400, expect.stringContaining(message)]);
    }
  });
});

test('a database that does not answer delays no request, and shows in the metrics', async () => {
  const url = 'postgres://weir@127.0.0.1:1/weir';
  const gateway = await start({ store: { kind: 'memory' }, journal: { url, flushMs: 100 } });
  expect((await gateway.send('GET', '/v3/things')).status).toBe(200);
  await expect.poll(() => gateway.metrics()).toMatch(/^weir_journal_failures_total [1-9]/m);
  expect(await gateway.metrics()).toMatch(/^weir_journal_lag_seconds [0-9.]+/m);
  expect((await readFrom(gateway, `/usage/accounts/acct_1?period=${TODAY}`)).status).toBe(503);
});

test('without a journal, past periods are a 404 that says why', async () => {
  const gateway = await start({ store: { kind: 'memory' } });
  const answer = await readFrom(gateway, `/usage/accounts/acct_1?period=${TODAY}`);
  expect([answer.status, await answer.json()]).toEqual([
    404,
    { error: expect.stringContaining('journal.url') },
  ]);
});

import { expect, it } from 'vitest';
import { UsageBatch } from '../../../../src/observe/usage/batch.ts';
import {
  rank,
  readWindow,
  Talkers,
  type WindowSummary,
  windowOf,
} from '../../../../src/observe/usage/talkers.ts';
import type { RequestContext } from '../../../../src/stages/request-context.ts';
import { LIST, requestOf } from '../../../fixtures/request-context.ts';

function request(account: string, cost = 1): RequestContext {
  return Object.assign(requestOf(account, 'org_1'), { operation: { ...LIST, cost } });
}

/** The last ten seconds of a replica whose Accounts have spent this much, as another replica reads it. */
async function published(spent: Readonly<Record<string, number>>): Promise<WindowSummary> {
  const batch = new UsageBatch();
  const talkers = new Talkers(batch);
  for (const [account, points] of Object.entries(spent)) batch.requestFinished(request(account, points), 0);
  return (
    readWindow(JSON.parse(JSON.stringify(await talkers.summary(0))), '10s') ??
    expect.fail('the summary is not readable')
  );
}

it('replicas add up, and the first 50 are ranked', async () => {
  const many = Object.fromEntries(Array.from({ length: 80 }, (_, index) => [`acct_${index}`, index + 1]));
  const top = rank([await published(many), await published({ acct_3: 1_000 })], '10s');
  expect(top).toMatchObject({ window: '10s', replicas: 2 });
  expect(top.accounts.byPoints).toHaveLength(50);
  expect(top.accounts.byPoints.slice(0, 2)).toMatchObject([
    { id: 'acct_3', organization: 'org_1', points: 1_004, requests: 2, refused: 0, error: 0 },
    { id: 'acct_79', organization: 'org_1', points: 80, requests: 1, refused: 0, error: 0 },
  ]);
  expect(top.organizations.byPoints).toMatchObject([
    { id: 'org_1', points: 4_240, requests: 81, refused: 0, error: 0 },
  ]);
  expect(top.accounts.byRefused).toEqual([]);
});

it('the last ten minutes of the first are sums over the replicas, in tens of seconds', async () => {
  const ofReplica = async (times: Readonly<Record<number, number>>) => {
    const batch = new UsageBatch();
    const talkers = new Talkers(batch);
    for (const [second, points] of Object.entries(times)) {
      batch.requestFinished(request('acct_1', points), Number(second) * 1_000);
      await talkers.summary(Number(second) * 1_000);
    }
    const text = JSON.stringify(await talkers.summary(45_000));
    return readWindow(JSON.parse(text), '10m') ?? expect.fail('not readable');
  };
  const top = rank([await ofReplica({ 5: 2, 15: 3, 16: 1, 44: 9 }), await ofReplica({ 35: 10 })], '10m');
  // The points of the 44th second are of tens that have not ended.
  expect(top.accounts.byPoints[0]?.trend).toEqual([2, 4, 0, 10]);
  expect(top.accounts.byRequests[0]?.trend).toEqual([1, 2, 0, 1]);
  expect(top.organizations.byPoints[0]?.trend).toEqual([2, 4, 0, 10]);
});

it('a flood of other Accounts within a second does not divide the counts of one', async () => {
  const batch = new UsageBatch();
  const talkers = new Talkers(batch);
  for (let round = 0; round < 3; round++) {
    batch.requestFinished(request('heavy', 1_000), 0);
    for (let index = 0; index < 20_000; index++) batch.requestFinished(request(`${round}_${index}`), 0);
  }
  const [first] = rank([windowOf(await talkers.summary(0), '10s')], '10s').accounts.byPoints;
  expect(first).toMatchObject({ id: 'heavy', points: 3_000, requests: 3, error: 0 });
});

it('what a replica leaves out is stated as an error', async () => {
  const many = Object.fromEntries(Array.from({ length: 300 }, (_, index) => [`a${index}`, 300 - index]));
  const [first] = rank([await published(many), await published({ z: 500 })], '10s').accounts.byPoints;
  expect(first).toMatchObject({ id: 'z', requests: 1 });
  expect(first?.error).toBe(200);
  expect(first?.points).toBe(700);
});

it('while nothing is counted, those with the most requests are ranked and published, whatever was spent before', async () => {
  const batch = new UsageBatch();
  const talkers = new Talkers(batch);
  const uncounted = { outcome: 'uncounted', policy: '', reason: 'disconnected' } as const;
  const send = (account: string, times: number) => {
    for (let sent = 0; sent < times; sent++)
      batch.requestFinished(Object.assign(request(account), { charged: uncounted }), 0);
  };
  for (let index = 0; index < 5_000; index++) send(`quiet_${index}`, 1);
  for (let index = 0; index < 100; index++) batch.requestFinished(request(`spender_${index}`, 10), 0);
  send('flood', 1_000);
  const text = JSON.stringify(await talkers.summary(0));
  const top = rank([readWindow(JSON.parse(text), '10s') ?? expect.fail('not readable')], '10s');
  expect(top.accounts.byRequests[0]).toMatchObject({ id: 'flood', requests: 1_000, refused: 0 });
  expect(top.accounts.byPoints[0]?.id).toMatch(/^spender_/);
  expect(JSON.parse(text)['10s'].accounts.rows.length).toBeLessThanOrEqual(200);

  const later = new UsageBatch();
  const alone = new Talkers(later);
  for (const [account, times] of Object.entries({ one: 1, flood: 9, three: 3 })) {
    for (let sent = 0; sent < times; sent++)
      later.requestFinished(Object.assign(request(account), { charged: uncounted }), 0);
  }
  const { byPoints } = rank([windowOf(await alone.summary(0), '10s')], '10s').accounts;
  expect(byPoints.map(({ id }) => id)).toEqual(['flood', 'three', 'one']);
});

it.each(['""', 'null', '{}', '{"10s":{"accounts":{"floor":0,"rows":[[1]]}}}'])('%j is no summary', (text) => {
  expect(readWindow(JSON.parse(text), '10s')).toBeUndefined();
});

import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { Caller } from '../../../../src/domain/caller.ts';
import { LastRequests, UsageBatch, type UsageSum } from '../../../../src/observe/usage/batch.ts';
import { LIST, requestOf } from '../../../fixtures/request-context.ts';

const requests = fc.array(
  fc.record({
    account: fc.integer({ min: 0, max: 9 }).map((number) => `acct_${number}`),
    operation: fc.integer({ min: 0, max: 2 }),
    pauseMs: fc.oneof(fc.nat(50), fc.nat(3_000)),
    isFlushed: fc.boolean(),
    isHeld: fc.boolean(),
  }),
  { maxLength: 200 },
);

const OPERATIONS = [0, 1, 2].map((index) => ({ ...LIST, id: `op${index}`, cost: index + 1 }));

function collectedBy(batch: UsageBatch): UsageSum[] {
  const received: UsageSum[] = [];
  batch.passTo((spending) => received.push(spending));
  return received;
}

/** Requests and points by Account, operation and second. */
function sumsOf(
  all: readonly { readonly key: string; readonly requests: number; readonly points: number }[],
) {
  const sums = new Map<string, { requests: number; points: number }>();
  for (const { key, requests, points } of all) {
    const sum = sums.get(key) ?? { requests: 0, points: 0 };
    sums.set(key, { requests: sum.requests + requests, points: sum.points + points });
  }
  return sums;
}

it('every request, and what held ones have cost, is passed on once, in the second in which it ended', () => {
  fc.assert(
    fc.property(requests, (all) => {
      const batch = new UsageBatch();
      const received = collectedBy(batch);
      let nowMs = 0;
      const sent = all.map(({ account, operation: index, pauseMs, isFlushed, isHeld }) => {
        const operation = OPERATIONS[index] ?? LIST;
        nowMs += pauseMs;
        const request = Object.assign(requestOf(account), { operation });
        if (isHeld) batch.pointsSpent(request.caller as Caller, operation, 7, nowMs);
        else batch.requestFinished(request, nowMs);
        if (isFlushed) batch.flush();
        const key = `${account} ${operation.id} ${Math.floor(nowMs / 1_000)}`;
        return isHeld ? { key, requests: 0, points: 7 } : { key, requests: 1, points: operation.cost };
      });
      batch.flush();
      const passedOn = received.map(({ payer, operation, secondMs, requests, points }) => ({
        key: `${payer.account} ${operation.id} ${secondMs / 1_000}`,
        requests,
        points,
      }));
      expect(sumsOf(passedOn)).toEqual(sumsOf(sent));
    }),
  );
});

it('requests of the same payer and operation are one sum, and a few sums are passed on with each request', () => {
  const batch = new UsageBatch();
  const received = collectedBy(batch);
  for (let index = 0; index < 1_000; index++) batch.requestFinished(requestOf(`acct_${index % 100}`), 0);
  expect(received).toHaveLength(0);
  batch.requestFinished(requestOf('acct_0'), 1_000);
  expect(received.length).toBeLessThan(5);
  batch.flush();
  expect(received).toHaveLength(101);
});

it('a payer whose Organization changes is two', () => {
  const batch = new UsageBatch();
  const received = collectedBy(batch);
  for (const organization of ['old', 'new', 'new']) batch.requestFinished(requestOf('a', organization), 0);
  batch.flush();
  const counted = received.map(({ payer, requests }) => [payer.organization, requests]);
  expect(counted).toEqual(
    expect.arrayContaining([
      ['old', 1],
      ['new', 2],
    ]),
  );
});

it('what waits is bounded', () => {
  const batch = new UsageBatch();
  const received = collectedBy(batch);
  for (let index = 0; index < 20_000; index++) batch.requestFinished(requestOf(`acct_${index}`), 0);
  expect(received.length).toBeGreaterThan(15_000);
});

it('the sum of an Organization has each request of its Accounts once, and follows their sums', () => {
  fc.assert(
    fc.property(requests, (all) => {
      const batch = new UsageBatch();
      const received = collectedBy(batch);
      let nowMs = 0;
      for (const { account, operation: index, pauseMs, isFlushed } of all) {
        const operation = OPERATIONS[index] ?? LIST;
        nowMs += pauseMs;
        const organization = `org_${Number(account.at(-1)) % 3}`;
        batch.requestFinished(Object.assign(requestOf(account, organization), { operation }), nowMs);
        if (isFlushed) batch.flush();
      }
      batch.flush();
      const keyOf = ({ payer, operation, secondMs }: UsageSum) =>
        `${payer.organization} ${operation.id} ${secondMs}`;
      const ofAccounts = received.filter(({ accounts }) => accounts === undefined);
      const ofOrganizations = received.filter(({ accounts }) => accounts !== undefined);
      const keyed = (sums: readonly UsageSum[]) => sumsOf(sums.map((sum) => ({ ...sum, key: keyOf(sum) })));
      expect(keyed(ofOrganizations)).toEqual(keyed(ofAccounts));
      const placeOf = (sum: UsageSum) => received.indexOf(sum);
      const early = ofOrganizations.filter((sum) => sum.accounts?.some((one) => placeOf(one) > placeOf(sum)));
      expect(early).toEqual([]);
    }),
  );
});

it('the last 131,072 requests are found by their ids, the last one first', () => {
  const requests = new LastRequests();
  const add = (requestId: string, status: number, nowMs: number) =>
    requests.add(Object.assign(requestOf('acct_1'), { requestId }), status, nowMs);
  add('first', 200, 1);
  add('again', 200, 2);
  for (let index = 0; index < 131_070; index++) add(`${index}`, 200, 3);
  add('again', 503, 4);
  expect(requests.find('first', 5)).toEqual([]);
  expect(requests.find('again', 5).map(({ status, endedMs }) => [status, endedMs])).toEqual([
    [503, 4],
    [200, 2],
  ]);
  expect(requests.find('again', 1)).toMatchObject([{ status: 503, account: 'acct_1', operation: LIST.id }]);
  expect(requests.find('niaga', 5)).toEqual([]);
});

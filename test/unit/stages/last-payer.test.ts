import { expect, it } from 'vitest';
import type { Account, Caller, Principal } from '../../../src/domain/caller.ts';
import { contractRows } from '../../../src/domain/limits/rows.ts';
import { authorise } from '../../../src/stages/authorise.ts';
import { Buckets } from '../../../src/stages/buckets/buckets.ts';
import { LastPayer } from '../../../src/stages/last-payer.ts';
import type { Operation } from '../../../src/stages/request-context.ts';

const READ: Operation = { id: 'read', cost: 1, access: 'caller', kind: 'read', listed: true };
const PRINCIPAL: Principal = { id: 'svc_1', type: 'ServiceAccount', account: 'acct_1', actsFor: new Set() };

function limitsOf(accountRead: number, untilMs?: number) {
  const own = { limit: accountRead, shadow: false, ...(untilMs === undefined ? {} : { untilMs }) };
  return {
    windowSeconds: 1,
    rows: contractRows(1),
    defaults: { 'account-read': { limit: 10, shadow: false } },
    plans: new Map(),
    unwritten: [],
    accounts: new Map([['acct_1', { limits: { 'account-read': own } }]]),
    organizations: new Map(),
    principals: new Map(),
    addresses: new Map(),
  };
}

function callerFrom(account: Account, last: LastPayer): Caller {
  const directory = { find: () => account };
  return authorise(directory, PRINCIPAL, { access: 'caller' }, undefined, last) as Caller;
}

it('the next request of a connection has the same caller and the same buckets', () => {
  const [last, account, buckets] = [new LastPayer(), {}, new Buckets('weir', limitsOf(20))];
  const caller = callerFrom(account, last);
  expect(callerFrom(account, last)).toBe(caller);
  expect(buckets.bucketsFor(caller, READ, last)).toBe(buckets.bucketsFor(caller, READ, last));
});

it('an Account that the directory describes anew has another caller', () => {
  const last = new LastPayer();
  expect(callerFrom({ organization: 'org_1' }, last).organization).toBe('org_1');
  expect(callerFrom({ organization: 'org_2' }, last).organization).toBe('org_2');
});

it('limits that change or expire apply to the next request', () => {
  let nowMs = 1_000;
  const buckets = new Buckets('weir', limitsOf(20, 2_000), () => nowMs);
  const last = new LastPayer();
  const caller = callerFrom({}, last);
  const limit = () => buckets.bucketsFor(caller, READ, last).buckets[0]?.limit;
  expect(limit()).toBe(20);
  nowMs = 2_000;
  expect(limit()).toBe(10);
  buckets.replaceLimits(limitsOf(30));
  expect(limit()).toBe(30);
});

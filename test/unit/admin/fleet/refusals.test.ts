import { expect, it } from 'vitest';
import { mostRecent, Refusals } from '../../../../src/admin/fleet/refusals.ts';
import { Refusal } from '../../../../src/domain/problems.ts';
import type { RequestContext } from '../../../../src/stages/request-context.ts';
import { LIST, requestOf } from '../../../fixtures/request-context.ts';

function refused(account: string, requestId: string): RequestContext {
  const refusal = new Refusal('RateLimitExceeded', 'The bucket has no room.', {
    headers: { 'Retry-After': '7' },
  });
  return Object.assign(requestOf(account, 'org_1'), {
    requestId,
    refusal,
    operation: { ...LIST, cost: 3 },
    charged: {
      outcome: 'denied',
      policy: '',
      rateLimit: '',
      bucket: 'account-read',
      owner: account,
      limit: 5,
      windowSeconds: 1,
      remaining: 0,
      retryAfterUs: 1_000,
      refusal,
    },
    // Of the exchange, whose body has to be released with it.
    source: { field: () => undefined, valuesOf: () => [], body: Buffer.alloc(1_000) },
  });
}

let nowMs = 0;

function finish(refusals: Refusals, context: RequestContext, atMs: number): void {
  nowMs = atMs;
  refusals.requestFinished(context);
}

it('has the reason of a refusal, and nothing of a body', () => {
  const refusals = new Refusals(() => nowMs);
  finish(refusals, refused('acct_1', 'r1'), 5);
  expect(refusals.latest()).toEqual([
    {
      atMs: 5,
      account: 'acct_1',
      organization: 'org_1',
      principal: 'svc',
      address: null,
      operation: 'list',
      status: 429,
      reason: 'RateLimitExceeded',
      detail: 'The bucket has no room.',
      cost: 3,
      bucket: 'account-read',
      retryAfterSeconds: 7,
      requestId: 'r1',
    },
  ]);
  for (const scope of ['account', 'organization', 'person'] as const) {
    const id = { account: 'acct_1', organization: 'org_1', person: 'svc' }[scope];
    expect(refusals.of({ scope, id })).toHaveLength(1);
    expect(refusals.of({ scope, id: 'else' })).toEqual([]);
  }
});

it('is bounded, and one Account that is refused all the time hides no other', () => {
  const refusals = new Refusals(() => nowMs);
  for (let index = 0; index < 1_000; index++) finish(refusals, refused(`acct_${index}`, `q${index}`), index);
  for (let index = 0; index < 1_000; index++)
    finish(refusals, refused('busy', `b${index}`), 1_000 + 100 * index);
  const latest = refusals.latest();
  expect(latest).toHaveLength(40);
  expect(latest.filter(({ account }) => account === 'busy').map(({ requestId }) => requestId)).toEqual([
    'b999',
    'b998',
    'b997',
    'b996',
  ]);
  expect(latest[4]?.requestId).toBe('q999');
  expect(refusals.of({ scope: 'account', id: 'busy' })).toHaveLength(8);
  expect(refusals.of({ scope: 'account', id: 'acct_999' })).toHaveLength(1);
  expect(refusals.of({ scope: 'account', id: 'acct_1' })).toEqual([]);
  expect(refusals.of({ scope: 'organization', id: 'org_1' }).length).toBeLessThanOrEqual(2_000);
});

it('a flood of one reason is remembered ten times a second, and another reason at once', () => {
  const refusals = new Refusals(() => nowMs);
  for (let atMs = 0; atMs < 500; atMs++) finish(refusals, refused('busy', `b${atMs}`), atMs);
  const other = Object.assign(refused('busy', 'other'), {
    refusal: new Refusal('ValidationError', 'Not valid.'),
  });
  finish(refusals, other, 500);
  const seen = refusals.of({ scope: 'account', id: 'busy' }).map(({ requestId }) => requestId);
  expect(seen).toEqual(['other', 'b400', 'b300', 'b200', 'b100', 'b0']);
});

function refusedAddress(address: string, requestId: string): RequestContext {
  const publicClient = { address, hashTag: address };
  return Object.assign(refused('acct_1', requestId), { caller: undefined, publicClient });
}

it('has the refusals of public operations, by address', () => {
  const refusals = new Refusals(() => nowMs);
  finish(refusals, refusedAddress('192.0.2.7', 'r1'), 5);
  expect(refusals.of({ scope: 'address', id: '192.0.2.7' })).toMatchObject([
    { account: null, organization: null, principal: null, address: '192.0.2.7', requestId: 'r1' },
  ]);
});

it('refusals of any number of addresses hide no refusal of an Account', () => {
  const refusals = new Refusals(() => nowMs);
  for (let index = 0; index < 40; index++) finish(refusals, refused(`acct_${index}`, `q${index}`), index);
  for (let index = 0; index < 1_000; index++)
    finish(refusals, refusedAddress(`2001:db8:0:${index.toString(16)}::/64`, `p${index}`), 1_000 + index);
  expect(refusals.of({ scope: 'account', id: 'acct_0' })).toHaveLength(1);
  const latest = refusals.latest();
  expect(latest).toHaveLength(40);
  expect(latest.filter(({ account }) => account !== null)).toHaveLength(30);
  expect(latest[0]?.requestId).toBe('p999');
  // Those that several replicas published, as a console shows them.
  const shown = mostRecent(
    ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'].flatMap(() => latest),
    50,
  );
  expect(shown.filter(({ account }) => account !== null)).toHaveLength(38);
});

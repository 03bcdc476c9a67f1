import { Socket } from 'node:net';
import { expect, it } from 'vitest';
import { Refusals } from '../../../src/admin/fleet/refusals.ts';
import type { Principal } from '../../../src/domain/caller.ts';
import { Refusal } from '../../../src/domain/problems.ts';
import { heldDecision } from '../../../src/gateway/decisions/api/held-decisions.ts';
import { Peer, TrustedProxies } from '../../../src/http/message/fields/forwarded.ts';
import { authorise } from '../../../src/stages/authorise.ts';
import { LastPayer } from '../../../src/stages/last-payer.ts';
import { cutText, heapGrowthOf } from '../../fixtures/heap.ts';
import { requestOf } from '../../fixtures/request-context.ts';

/** Longer than the gateway accepts, so that nothing else in this process counts beside it. */
const HEAD_LENGTH = 100_000;
const HEADS = 200;

const refusals = new Refusals(() => 1_000);
const trusted = new TrustedProxies(['10.0.0.1']);
const peer = new Peer(Object.defineProperty(new Socket(), 'remoteAddress', { value: '10.0.0.1' }));
const last = new LastPayer();

function callerFor(principal: Principal, number: number) {
  const named = cutText(`acct_0123456789_${number}`, HEAD_LENGTH);
  return authorise({ find: () => ({ organization: 'org_1' }) }, principal, { access: 'caller' }, named, last);
}

function addressFrom(list: string): string {
  const forwarded = cutText(list, HEAD_LENGTH);
  return trusted.addressOf({ peer, head: { field: () => forwarded } });
}

/** What is remembered of one request, by what a client chose. */
const REMEMBERED: Readonly<Record<string, (number: number) => unknown>> = {
  'the Account that a service of an Organization names': (number) =>
    callerFor({ id: 'svc_1', type: 'ServiceAccount', organization: 'org_1' }, number),
  'the Account that a Person acts for': (number) => {
    const actsFor = new Set([`acct_0123456789_${number}`]);
    return callerFor({ id: 'person_1', type: 'Person', account: 'acct_1', actsFor }, number);
  },
  'the Account of the principal': (number) => {
    const [account, actsFor] = [`acct_0123456789_${number}`, new Set<string>()];
    return callerFor({ id: 'svc_1', type: 'ServiceAccount', account, actsFor }, number);
  },
  'an address behind a proxy': (number) => addressFrom(`198.51.100.${number}`),
  'an address behind several proxies': (number) =>
    addressFrom(`198.51.101.${number}${', 10.0.0.1'.repeat(9)}`),
  'the id of a refused request': (number) => {
    const requestId = cutText(`request_0123456789_${number}`, HEAD_LENGTH);
    const refusal = new Refusal('RateLimitExceeded', 'The bucket has no room.');
    refusals.requestFinished(Object.assign(requestOf(`acct_${number}`), { requestId, refusal }));
    return undefined;
  },
  'the id of a decision that a program holds': (number) => {
    const request = Object.assign(requestOf('acct_1'), {
      requestId: cutText(`request_0123456789_${number}`, HEAD_LENGTH),
      asked: { buckets: [], cost: 1, operation: 'list' },
      decision: { outcome: 'admitted', chargedAtUs: 1, buckets: [] },
      source: { heldMs: 1_000 },
    });
    return heldDecision(request as unknown as Parameters<typeof heldDecision>[0], `${number}`)?.requestId;
  },
};

it.each(Object.entries(REMEMBERED))(
  '%s keeps nothing else of the head in memory',
  async (_name, remember) => {
    const kept: unknown[] = [];
    const growthBytes = await heapGrowthOf(() => {
      for (let number = 0; number < HEADS; number++) kept.push(remember(number));
    });
    expect(kept).toHaveLength(HEADS);
    expect(growthBytes).toBeLessThan((HEADS * HEAD_LENGTH) / 10);
  },
);

it('an id beyond Latin-1, which only a body can have, is not changed', () => {
  const named = 'acct_\u{141}\u{142}_0123456789';
  const principal: Principal = { id: 'svc_1', type: 'ServiceAccount', organization: 'org_1' };
  const caller = authorise(
    { find: () => ({ organization: 'org_1' }) },
    principal,
    { access: 'caller' },
    named,
  );
  expect(caller).toMatchObject({ account: named });
});

import { expect, it } from 'vitest';
import type { OwnUsageAnswer } from '../../src/gateway/usage/own-usage-answer.ts';
import { type Next, openFuzz, pick } from '../fixtures/fuzz.ts';
import { startGateway, type TestGateway } from '../fixtures/gateway.ts';

const PATH = '/.well-known/rate-limits';

/** Whom each token may act for, its own Account first (contract section 5). */
const MAY_ACT_FOR: Readonly<Record<string, readonly (string | undefined)[]>> = {
  person: ['acct_1', 'acct_2'],
  other: ['acct_2'],
  service: ['acct_1'],
  lonely: ['acct_3'],
  organization: [undefined, 'acct_1', 'acct_2'],
  nobody: [undefined],
};

const ORGANIZATIONS: Readonly<Record<string, string>> = { acct_1: 'org_1', acct_2: 'org_1', acct_4: 'org_2' };

const IDS = ['acct_1', 'acct_2', 'acct_3', 'acct_4', 'org_1', 'org_2', 'person_', 'svc_'];

interface Sent {
  readonly token: string;
  readonly account?: string;
}

function draw(next: Next): Sent {
  const token = pick(next, ['person', 'other', 'service', 'lonely', 'organization', 'nobody']);
  const account = pick(next, [undefined, undefined, 'acct_1', 'acct_2', 'acct_3', 'acct_4', 'ACCT_1', '']);
  return { token, ...(account === undefined ? {} : { account }) };
}

/** The Account that a request is charged to; undefined if it is refused. */
function targetOf({ token, account }: Sent): string | undefined {
  const may = MAY_ACT_FOR[token] ?? [];
  const target = account ?? may[0];
  return target !== undefined && may.includes(target) ? target : undefined;
}

/** What requests have spent, counted by the test. */
class Ledger {
  readonly #spent = new Map<string, number>();

  spend(bucket: string, owner: string | undefined): void {
    this.#spent.set(`${bucket} ${owner}`, this.of(bucket, owner) + 1);
  }

  of(bucket: string, owner: string | undefined): number {
    return this.#spent.get(`${bucket} ${owner}`) ?? 0;
  }
}

async function spend(gateway: TestGateway, sent: Sent, isPersonal: boolean, ledger: Ledger): Promise<void> {
  const path = isPersonal ? '/v3/mfa-factors' : '/v3/things';
  const { status } = await gateway.send('GET', path, sent);
  if (status !== 200) return;
  if (isPersonal) ledger.spend('person-read', sent.token);
  else {
    const target = targetOf(sent) ?? '';
    ledger.spend('account-read', target);
    ledger.spend('organization-read', ORGANIZATIONS[target]);
  }
}

async function look(gateway: TestGateway, sent: Sent, ledger: Ledger): Promise<void> {
  const target = targetOf(sent);
  const response = await gateway.send('GET', PATH, sent);
  const text = await response.text();
  expect([sent, response.status === 200]).toEqual([sent, target !== undefined]);
  const organization = ORGANIZATIONS[target ?? ''];
  for (const id of IDS) if (id !== target && id !== organization) expect(text).not.toContain(id);
  if (target === undefined) return;
  const { id, buckets, ...answer } = JSON.parse(text) as OwnUsageAnswer;
  expect([id, answer.organization]).toEqual([target, organization ?? null]);
  const owners: Readonly<Record<string, string | undefined>> = {
    account: target,
    organization,
    person: sent.token,
  };
  for (const { bucket, scope, used } of buckets) {
    expect([sent, bucket, used]).toEqual([sent, bucket, ledger.of(bucket, owners[scope])]);
  }
}

it('a caller sees the buckets that its request is charged to and nothing else, whichever Account it names', async () => {
  const { next, cases } = openFuzz(200, 35);
  const names = ['account-read', 'organization-read', 'person-read'];
  const defaults = Object.fromEntries(names.map((name) => [name, 900_000]));
  const gateway = await startGateway({
    settings: { usage: { path: PATH, requestsPerMinute: 1_000_000 } },
    limits: { windowSeconds: 86_400, defaults },
  });
  const ledger = new Ledger();
  try {
    for (let index = 0; index < cases; index++) {
      const sent = draw(next);
      if (next(2) === 0) await spend(gateway, sent, next(3) === 0, ledger);
      else await look(gateway, sent, ledger);
    }
  } finally {
    await gateway.close();
  }
});

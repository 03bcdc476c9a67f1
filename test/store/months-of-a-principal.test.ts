/** One bucket counts what a principal does for all Accounts of an Organization, so its months must not depend on the Account. */
import { Redis } from 'ioredis';
import { afterAll, describe, expect, test } from 'vitest';
import { parseLimits } from '../../src/config/files/limits/parse-limits.ts';
import type { Caller, Principal } from '../../src/domain/caller.ts';
import { calendarOf } from '../../src/domain/limits/calendar.ts';
import { Buckets } from '../../src/stages/buckets/buckets.ts';
import type { Operation } from '../../src/stages/request-context.ts';
import { Generations } from '../../src/store/generations.ts';
import { MemoryStore } from '../../src/store/memory-store.ts';
import type { PeriodCount } from '../../src/store/period-count.ts';
import type { Charge, Decision } from '../../src/store/store.ts';
import { sharedRedisUrl, uniquePrefix } from '../fixtures/redis-url.ts';
import { runCharges } from '../fixtures/run-charges.ts';

const client = new Redis(sharedRedisUrl());
afterAll(() => client.disconnect());

const DAY_MS = 86_400_000;
const START_MS = Date.UTC(2026, 10, 1, 12);
const LIMIT = 5;

const PERSON: Principal = { id: 'who', type: 'Person', account: 'acct_1', actsFor: new Set(['acct_2']) };
const SERVICE: Principal = { id: 'who', type: 'ServiceAccount', organization: 'org_1' };
const ACCOUNT_DAYS = 'accounts: { acct_1: { periodStartsOn: 3 }, acct_2: { periodStartsOn: 15 } }';
const ORGANIZATION_DAYS = 'organizations: { org_1: { periodStartsOn: 20 }, org_2: { periodStartsOn: 8 } }';

/** A key of a service that belongs to one Account of its Organization. */
function keyOf(account: string, periodStartsOn: number): Principal {
  const home = { account: undefined };
  return { id: 'who', type: 'ServiceAccount', account, actsFor: new Set(), periodStartsOn, home };
}

function callerOf(principal: Principal, account: string, more: Partial<Caller> = {}): Caller {
  const organization = 'org_1';
  return { principal, account, organization, hasOrganizationLimit: true, hashTag: 'org_1', ...more };
}

interface Case {
  readonly files: string;
  readonly access?: 'person';
  /** Two callers with one bucket. */
  readonly callers: readonly [Caller, Caller];
  readonly startsOn: number;
}

const CASES: readonly (readonly [string, Case])[] = [
  [
    'of its own Account in the files',
    {
      files: ACCOUNT_DAYS,
      callers: [callerOf(PERSON, 'acct_1'), callerOf(PERSON, 'acct_2')],
      startsOn: 3,
    },
  ],
  [
    'of the limit, where the directory alone names days',
    {
      files: '',
      callers: [
        callerOf(PERSON, 'acct_1', { periodStartsOn: 3 }),
        callerOf(PERSON, 'acct_2', { periodStartsOn: 15 }),
      ],
      startsOn: 1,
    },
  ],
  [
    'of its token',
    {
      files: '',
      callers: [
        callerOf({ ...PERSON, periodStartsOn: 3 }, 'acct_1', { periodStartsOn: 3 }),
        callerOf({ ...PERSON, periodStartsOn: 3 }, 'acct_2', { periodStartsOn: 15 }),
      ],
      startsOn: 3,
    },
  ],
  [
    'of the Organization, for its service',
    {
      files: `${ACCOUNT_DAYS}\n${ORGANIZATION_DAYS}`,
      callers: [callerOf(SERVICE, 'acct_1'), callerOf(SERVICE, 'acct_2')],
      startsOn: 20,
    },
  ],
  [
    'of the limit, for keys of a service that belong to Accounts',
    {
      files: ACCOUNT_DAYS,
      callers: [callerOf(keyOf('acct_1', 3), 'acct_1'), callerOf(keyOf('acct_2', 15), 'acct_2')],
      startsOn: 1,
    },
  ],
  [
    'of the Organization of its own Account, for Person-only operations',
    {
      files: ORGANIZATION_DAYS,
      access: 'person',
      callers: [callerOf(PERSON, 'acct_1'), callerOf(PERSON, 'acct_2', { organization: 'org_2' })],
      startsOn: 20,
    },
  ],
];

const STORES: readonly [string, () => (charge: Charge, nowUs: number) => Promise<Decision>][] = [
  [
    'memory',
    () => {
      let nowUs = 0;
      const store = new MemoryStore(() => nowUs, undefined, undefined, new Generations<PeriodCount>(10));
      return async (charge, atUs) => {
        nowUs = atUs;
        return store.charge(charge);
      };
    },
  ],
  [
    'Redis',
    () => async (charge, nowUs) => {
      const [decision] = await runCharges(client, [charge], { nowUs });
      return decision as Decision;
    },
  ],
];

describe.each(STORES)('in %s', (_, open) => {
  test.each(CASES)(
    'a principal that acts for two Accounts in turn has one month, which begins on the day %s',
    async (_day, { files, access = 'caller', callers, startsOn }) => {
      const charge = open();
      const limits = parseLimits(
        `limits: { key-month: { per: principal, points: ${LIMIT}, period: month } }\n${files}`,
        'limits.yaml',
      );
      let nowMs = START_MS;
      const buckets = new Buckets(uniquePrefix(), limits, () => nowMs);
      const operation = { id: 'listThings', kind: 'read', access, cost: 1, listed: true } as Operation;
      const months = calendarOf({ unit: 'month', timeZone: 'UTC', startsOn });
      const admitted = new Map<number, number>();
      const keys = new Set<string>();
      for (; nowMs < START_MS + 70 * DAY_MS; nowMs += DAY_MS / 2) {
        const [caller] = nowMs % DAY_MS === 0 ? callers : callers.toReversed();
        const due = buckets.bucketsFor(caller as Caller, operation).buckets;
        const own = due.filter(({ name }) => name === 'key-month');
        for (const { key } of own) keys.add(key);
        const { outcome } = await charge({ buckets: own, cost: 1 }, nowMs * 1_000);
        const month = months.at(nowMs).startMs;
        if (outcome === 'admitted') admitted.set(month, (admitted.get(month) ?? 0) + 1);
      }
      expect(keys.size).toBe(1);
      expect(Math.max(...admitted.values())).toBe(LIMIT);
      // All of them, in every month that was charged often enough.
      expect([...admitted.values()].filter((points) => points === LIMIT).length).toBeGreaterThan(1);
    },
  );
});

test.each(CASES)('usage outside a request shows the month that begins on the day %s', (_, one) => {
  const limits = parseLimits(
    `limits: { key-month: { per: principal, points: 5, period: month } }\n${one.files}`,
    'limits.yaml',
  );
  const buckets = new Buckets('weir', limits, () => START_MS);
  const [{ principal, hashTag }] = one.callers;
  const account = principal.home === undefined ? principal.account : principal.home.account;
  // Without a request, nothing is known of the token.
  const known = principal.periodStartsOn === undefined ? [undefined, principal] : [principal];
  for (const seen of known) {
    const owner = { hashTag, organization: hashTag, account, periodStartsOn: 27, principal: seen };
    const [own] = buckets.ownedBy('principal', 'who', owner);
    expect(own?.period?.startsOn).toBe(one.startsOn);
  }
});

import { setFlagsFromString } from 'node:v8';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { parseLimits } from '../../../../src/config/files/limits/parse-limits.ts';
import type { Caller } from '../../../../src/domain/caller.ts';
import { Buckets, type PayerBuckets } from '../../../../src/stages/buckets/buckets.ts';
import type { Operation } from '../../../../src/stages/request-context.ts';
import { generatedCases } from '../../../fixtures/generated-cases.ts';

const NOW_MS = Date.UTC(2026, 10, 25, 12);

const LIMITS = `windowSeconds: 1
limits:
  tokens: { per: organization, points: 1000, period: month, timeZone: Europe/Berlin, startsOn: 15 }
  month: { per: account, points: 900, period: month }
  minute: { per: principal, requests: 60, window: 1m }
  jobs: { per: service, concurrent: 5 }
  tried: { per: account, points: 50, shadow: true, window: 1h }
plans:
  pro: { month: 5000, account-read: 90, jobs: none }
  free: { minute: 5, tried: { limit: 3, shadow: true } }
accounts:
  acct_1: { month: 7, plan: free }
  acct_2: { periodStartsOn: 3 }
  acct_3: { plan: pro, until: "2026-11-25T12:00:01Z" }
organizations:
  org_1: { plan: pro, tokens: 4 }
  org_2: { periodStartsOn: 28 }
principals:
  who_1: { minute: 2 }
`;

const OPERATIONS = (['read', 'write', 'person'] as const).map((kind): Operation => {
  const access = kind === 'person' ? 'person' : 'caller';
  return { id: kind, kind: kind === 'person' ? 'read' : kind, access, cost: 1, listed: true } as Operation;
});

const number = fc.integer({ min: 1, max: 9 });

const caller = fc
  .record({
    type: fc.constantFrom('Person', 'ServiceAccount'),
    own: number,
    target: number,
    organization: fc.option(number, { nil: undefined }),
    who: number,
    hasOrganizationLimit: fc.boolean(),
    plan: fc.constantFrom(undefined, 'pro', 'free', 'gold'),
    principalPlan: fc.constantFrom(undefined, 'pro', 'free'),
    periodStartsOn: fc.constantFrom(undefined, 1, 17, 31),
    ownStart: fc.constantFrom(undefined, undefined, 2, 17),
    /** The Account of a principal whose key belongs to another one. */
    home: fc.oneof({ weight: 3, arbitrary: fc.constant(undefined) }, number),
    /** Of a Person's own Account, on Person-only operations. */
    homeOrganization: fc.oneof({ weight: 3, arbitrary: fc.constant(undefined) }, number),
  })
  .map(({ own, target, who, type, plan, principalPlan, periodStartsOn, ...others }): Caller => {
    const { ownStart, home, homeOrganization } = others;
    const organization = others.organization === undefined ? undefined : `org_${others.organization}`;
    const account = `acct_${target}`;
    return {
      principal: {
        id: `who_${who}`,
        type,
        account: `acct_${own}`,
        plan: principalPlan,
        periodStartsOn: ownStart,
        ...(home !== undefined && { home: { account: `acct_${home}` } }),
      } as Caller['principal'],
      account,
      organization,
      plan,
      periodStartsOn,
      hasOrganizationLimit: organization !== undefined && others.hasOrganizationLimit,
      hashTag: homeOrganization === undefined ? (organization ?? account) : `org_${homeOrganization}`,
    };
  });

/** The same caller on any other operation, whose buckets are kept where the Account's are. */
function countedAtHome(caller: Caller): Caller {
  return { ...caller, hashTag: caller.organization ?? caller.account };
}

/** A caller of the same kind whom no file names. */
function unnamed(caller: Caller): Caller {
  const isOwn = caller.principal.account === caller.account;
  const home = caller.principal.home && { home: { account: 'acct_8' } };
  const principal = { ...caller.principal, id: 'who_9', account: isOwn ? 'acct_9' : 'acct_8', ...home };
  const organization = caller.organization && 'org_9';
  const hashTag = organization ?? 'acct_9';
  return { ...caller, principal: principal as Caller['principal'], account: 'acct_9', organization, hashTag };
}

/** Without what only says that buckets are alike. */
function shown(due: PayerBuckets): object {
  const { endless, buckets, kind: _, ...others } = due;
  const own = buckets.map(({ alike: _alike, ...bucket }) => bucket);
  return { ...others, buckets: own, endless: endless && shown(endless) };
}

it('buckets that are copied for another caller are the ones that would be made for it', () => {
  const limits = parseLimits(LIMITS, 'limits.yaml');
  let nowMs = NOW_MS;
  const open = () => new Buckets('weir', limits, () => nowMs);
  const many = open();
  const asked = fc.record({ caller, operation: fc.constantFrom(...OPERATIONS), passedMs: fc.nat(2_000) });
  const runs = generatedCases(1_500);
  let copies = 0;
  fc.assert(
    fc.property(asked, ({ caller: given, operation, passedMs }) => {
      const caller = operation.access === 'person' ? given : countedAtHome(given);
      nowMs += passedMs;
      many.bucketsFor(unnamed(caller), operation);
      const due = many.bucketsFor(caller, operation);
      expect(shown(due)).toEqual(shown(open().bucketsFor(caller, operation)));
      expect(due.kind === undefined).toBe(due.buckets.every(({ alike }) => alike === undefined));
      if (due.kind !== undefined) copies += 1;
    }),
    { numRuns: runs },
  );
  expect(copies).toBeGreaterThan(runs / 10);
});

it('buckets have few hidden classes, of whatever caller and limit, so that V8 reads them fast', () => {
  setFlagsFromString('--allow-natives-syntax');
  const haveOneClass: (one: object, other: object) => boolean = new Function(
    ...['one', 'other'],
    'return %HaveSameMap(one, other)',
  ) as never;
  setFlagsFromString('--no-allow-natives-syntax');
  const many = new Buckets('weir', parseLimits(LIMITS, 'limits.yaml'), () => NOW_MS);
  const due = fc
    .sample(caller, 200)
    .map((one, index) => many.bucketsFor(one, OPERATIONS[index % OPERATIONS.length] as Operation));
  const classesOf = (objects: readonly object[]) =>
    objects.filter((one, at) => objects.findIndex((other) => haveOneClass(one, other)) === at);
  const buckets = due.flatMap((one) => one.buckets);
  expect(buckets.length).toBeGreaterThan(500);
  expect(classesOf(buckets).length).toBeLessThan(10);
  expect(classesOf(due).length).toBeLessThan(10);
});

it('a live limit is in force at once, for callers whose buckets were copied as well', () => {
  const buckets = new Buckets('weir', parseLimits('windowSeconds: 1\n', 'limits.yaml'), () => NOW_MS);
  const [operation] = OPERATIONS as [Operation];
  const callerOf = (account: string) =>
    ({
      principal: { id: 'who', type: 'Person', account, actsFor: new Set() },
      account,
      organization: undefined,
      hasOrganizationLimit: false,
      hashTag: account,
    }) satisfies Caller;
  const limitOf = (account: string) => buckets.bucketsFor(callerOf(account), operation).buckets[0]?.limit;
  const usual = limitOf('acct_1');
  expect(limitOf('acct_2')).toBe(usual);
  const live = { bucket: 'account-read', id: 'acct_2', limit: 5, untilMs: NOW_MS + 1_000, atMs: NOW_MS };
  buckets.applyLive({ ...live, by: 'operator', reason: 'test', isRemoved: false } as never);
  expect([limitOf('acct_1'), limitOf('acct_2')]).toEqual([usual, 5]);
});

it('a Person-only operation has the plan of the Account that the Person acts for', () => {
  const buckets = new Buckets('weir', parseLimits(LIMITS, 'limits.yaml'), () => NOW_MS);
  const [, , personOnly] = OPERATIONS as [Operation, Operation, Operation];
  const planFor = (account: string, organization?: string) => {
    const payer = {
      principal: { id: 'who_1', type: 'Person', account: 'acct_9', actsFor: new Set() },
      account,
      organization,
      hasOrganizationLimit: false,
      hashTag: 'acct_9',
    } satisfies Caller;
    return buckets.bucketsFor(payer, personOnly).plan;
  };
  expect([planFor('acct_1'), planFor('acct_3'), planFor('acct_9')]).toEqual(['free', 'pro', undefined]);
  expect([planFor('acct_7', 'org_1'), planFor('acct_7', 'org_3')]).toEqual(['pro', undefined]);
});

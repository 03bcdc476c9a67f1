import { setTimeout as pause } from 'node:timers/promises';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { parseLimits } from '../../src/config/files/limits/parse-limits.ts';
import type { Caller, Payer } from '../../src/domain/caller.ts';
import { weirLog } from '../../src/replay/input/weir-log.ts';
import { Replay } from '../../src/replay/replay.ts';
import { Buckets } from '../../src/stages/buckets/buckets.ts';
import { charge } from '../../src/stages/charge.ts';
import type { Charged, Operation, RequestContext } from '../../src/stages/request-context.ts';
import { settle } from '../../src/stages/settle.ts';
import { MemoryStore } from '../../src/store/memory-store.ts';
import { PLENTY } from '../fixtures/configuration.ts';
import { generatedCases } from '../fixtures/generated-cases.ts';
import { requestWith } from '../fixtures/request-context.ts';
import { startUpstream } from '../fixtures/upstream.ts';
import { startWeir } from '../fixtures/weir-process.ts';
import { logLine, START_MS } from './log-lines.ts';

const LIMITS = parseLimits(
  `{ windowSeconds: 1, defaults: { account-read: 12, account-write: 7, organization-read: 18, organization-write: 9,
     person-read: 5, person-write: 3, address-read: 6, address-write: 4 } }`,
  'limits.yaml',
);

const arbitraryRequest = fc.record({
  waitUs: fc.oneof(fc.integer({ min: 0, max: 200 }), fc.integer({ min: 0, max: 300_000 })),
  account: fc.constantFrom('acct_1', 'acct_2', 'acct_3'),
  kind: fc.constantFrom('read' as const, 'write' as const),
  cost: fc.integer({ min: 1, max: 3 }),
  access: fc.constantFrom('caller' as const, 'person' as const, 'public' as const),
  settled: fc.option(fc.integer({ min: 0, max: 5 }), { nil: undefined, freq: 2 }),
});

it('on the same clock, a replay refuses exactly the requests that the gateway refused', async () => {
  const pattern = fc.array(arbitraryRequest, { minLength: 20, maxLength: 300 });
  await fc.assert(
    fc.asyncProperty(pattern, async (requests) => {
      let nowUs = START_MS * 1000;
      const store = new MemoryStore(() => nowUs);
      const buckets = new Buckets('live', LIMITS, () => nowUs / 1000);
      const replay = new Replay(LIMITS, 'none', false);
      const readLine = weirLog();
      for (const { waitUs, account, settled, ...operation } of requests) {
        nowUs += waitUs;
        const organization = account === 'acct_3' ? undefined : 'org_1';
        const payer = payerOf(account, organization, operation);
        const request = requestWith({});
        const charged = await chargedAs(request, payer, operation, { store, buckets }, settled);
        const line = lineOf(nowUs, account, organization, operation, charged, request.settledCost);
        const entry = readLine(line);
        if (typeof entry === 'string' || 'problem' in entry) throw new Error('the line is not an entry');
        replay.take(entry);
      }
      replay.end();
      expect(replay.changed).toEqual({ refused: 0, admitted: 0 });
      expect(replay.refused.after).toBe(replay.refused.before);
      for (const stats of replay.buckets) expect(stats.refusedAfter, stats.name).toBe(stats.refusedBefore);
    }),
    { numRuns: generatedCases(60) },
  );
});

/** Charges a request, and settles it at once if it has a settled cost. */
async function chargedAs(
  request: RequestContext,
  payer: Payer,
  operation: Priced,
  dependencies: { readonly store: MemoryStore; readonly buckets: Buckets },
  settled: number | undefined,
): Promise<Charged> {
  const charged = await charge(request, payer, operationOf(operation), dependencies);
  if (settled !== undefined) settle(request, dependencies.store, settled);
  return charged as Charged;
}

function callerOf(account: string, organization: string | undefined): Caller {
  return {
    principal: { type: 'Person', id: 'person_1', account, actsFor: new Set() },
    account,
    organization,
    hasOrganizationLimit: organization !== undefined,
    hashTag: organization ?? account,
  };
}

/** There are as many addresses as Accounts. */
function payerOf(account: string, organization: string | undefined, { access }: Priced): Payer {
  return access === 'public' ? { address: account, hashTag: account } : callerOf(account, organization);
}

type Priced = Pick<Operation, 'kind' | 'cost' | 'access'>;

function operationOf(priced: Priced): Operation {
  return { id: 'any', listed: true, ...priced };
}

function lineOf(
  nowUs: number,
  account: string,
  organization: string | undefined,
  { kind, cost, access }: Priced,
  charged: Charged,
  settled: number | undefined,
): string {
  const bucket = charged.outcome === 'denied' ? charged.bucket : undefined;
  const { outcome } = charged;
  const common = { kind, cost, settled, chargedAtUs: nowUs, outcome, bucket, upstreamStatus: 200 };
  if (access === 'public') {
    const payer = { account: undefined, principal: undefined, public: true, address: account };
    return logLine({ atMs: 0, more: { ...common, ...payer } });
  }
  // Each Account's Organization has its own Person's bucket in the store, so they are different Persons here.
  const principal = `person_of_${organization ?? account}`;
  const more = { ...common, personOnly: access === 'person', principal };
  return logLine({ atMs: 0, account, ...(organization === undefined ? {} : { organization }), more });
}

/**
 * The gateway reads the clock for its log a moment before the store reads its own, so at the edge of a window a request
 * and its neighbour may swap their fates. The number of refusals stays nearly the same.
 */
const MOST_AT_EDGES = 0.1;
const MOST_TOTAL = 0.03;

const LIMIT = 15;

/** Some windows' worth, so that there are edges. */
const LEAST_ADMITTED = 4 * LIMIT;
const LEAST_REFUSED = 200;

it('replaying the log of a running gateway refuses the same requests, except at the edges of windows', async () => {
  const upstream = await startUpstream();
  const weir = await startWeir({
    upstreamUrl: upstream.url,
    limits: { ...PLENTY, windowSeconds: 1, accounts: { acct_1: { 'account-read': LIMIT } } },
  });
  const seen = { admitted: 0, refused: 0 };
  const client = async () => {
    while (seen.admitted < LEAST_ADMITTED || seen.refused < LEAST_REFUSED) {
      const response = await fetch(`${weir.url}/v3/things`, { headers: { Authorization: 'Bearer service' } });
      await response.text();
      seen[response.status === 429 ? 'refused' : 'admitted'] += 1;
      // The windows have to pass, in which more would only be more refusals.
      await pause(10);
    }
  };
  await Promise.all(Array.from({ length: 8 }, client));
  const sent = seen.admitted + seen.refused;
  const logged = () => weir.lines.filter((line) => line.includes('"msg":"request"')).length;
  await expect.poll(logged, { timeout: 30_000 }).toBe(sent);
  await weir.close();
  await upstream.close();

  const limits = parseLimits(
    `{ accounts: { acct_1: { account-read: ${LIMIT} } }, defaults: { organization-read: none } }`,
    'limits.yaml',
  );
  const replay = new Replay(limits, 'none', false);
  const readLine = weirLog();
  const entries = weir.lines.map(readLine).filter((entry) => typeof entry === 'object' && 'atUs' in entry);
  for (const entry of entries.sort((one, other) => one.atUs - other.atUs)) replay.take(entry);
  replay.end();
  expect(replay.requests).toBe(sent);
  expect(replay.refused.before).toBe(seen.refused);
  const atEdges = replay.changed.refused + replay.changed.admitted;
  console.log(
    `${replay.refused.before} of ${sent} refused live, ${replay.refused.after} in the replay, ${atEdges} differ`,
  );
  expect(atEdges).toBeLessThanOrEqual(sent * MOST_AT_EDGES);
  expect(Math.abs(replay.refused.after - replay.refused.before)).toBeLessThanOrEqual(sent * MOST_TOTAL);
});

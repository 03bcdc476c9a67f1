import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, describe, expect, test } from 'vitest';
import { openStore } from '../../src/store/open-store.ts';
import { ShareStore } from '../../src/store/share-store.ts';
import { uniquePrefix } from '../fixtures/redis-url.ts';
import { DEADLINE_MS, type Fault, RECOVERED_MS } from './fault.ts';
import { lineFaults } from './line-faults.ts';
import {
  fullestSecond,
  INTERVAL_MS,
  isCountedBy,
  Load,
  manyAccounts,
  oneAccount,
  percentile,
  reasonsOf,
  type Sample,
} from './load.ts';
import { serverFaults } from './server-faults.ts';
import { type FaultRow, saveFaultTable } from './table.ts';
import { topologyFaults } from './topology-faults.ts';

/** How long each outage lasts: `npm run test:faults` makes it long enough for a table of figures. */
const OUTAGE_MS = Number(process.env.WEIR_TEST_OUTAGE_MS ?? 500);
/**
 * Only `npm run test:faults`, which runs alone, judges how long it takes until requests are counted again. Beside other tests
 * it is enough that they are.
 */
const JUDGES_RECOVERY = process.env.WEIR_TEST_OUTAGE_MS !== undefined;
/** Faults at a time, where no times are judged: most of a test is waiting for outages and for servers. */
const LANES = JUDGES_RECOVERY ? 1 : 4;
/** Charges sent within a deadline, and the few more within which the breaker opens. */
const WITHIN_DEADLINE = DEADLINE_MS / INTERVAL_MS + 4;
/** A charge that is overtaken by more has waited. */
const WITHOUT_WAITING = 3;
/** Charges sent before the breaker opens, one each 5 ms: a deadline's worth, and the three that open it. */
const FIRST_FEW = 20;

/** A limit that an Account floods, and among how many replicas it is shared. */
const FLOODED_LIMIT = 100;
const REPLICAS = 4;
const PART = FLOODED_LIMIT / REPLICAS;

/** At the edges of an outage, and on a machine that is busy with other tests. */
const ALWAYS_POSSIBLE = ['disconnected', 'deadline'];

const faults: readonly Fault[] = [...serverFaults, ...lineFaults, ...topologyFaults];
const rows: FaultRow[] = [];

afterAll(() => saveFaultTable(rows, OUTAGE_MS));

/** Each lane tests its faults one after the other. */
const lanes = Array.from({ length: LANES }, (_, lane) => faults.filter((_, index) => index % LANES === lane));

describe.concurrent.each(lanes.map((lane) => [lane]))('a store that fails', { timeout: 120_000 }, (lane) => {
  test.sequential.for(lane)(
    '$name: requests go on uncounted, or within a part of the limit, and counting comes back',
    async (fault, { onTestFinished }) => {
      const faulty = await fault.start();
      const store = openStore(faulty.settings);
      const shared = new ShareStore(openStore(faulty.settings), () => REPLICAS);
      const load = new Load(store, manyAccounts(uniquePrefix()));
      const flood = new Load(shared, oneAccount(uniquePrefix(), FLOODED_LIMIT));
      onTestFinished(async () => {
        for (const one of [load, flood]) one.stop();
        for (const one of [store, shared]) await one.close();
        await faulty.stop();
      });
      for (const one of [load, flood]) await one.until(true, 0, 60);

      const brokenMs = performance.now();
      await faulty.break();
      await load.untilReasons(fault.reasons);
      await pause(OUTAGE_MS);
      const mendedMs = performance.now();
      await faulty.repair();
      const answerableMs = performance.now();
      const recovered = await load.until(true, answerableMs, 40);
      await flood.until(true, answerableMs, 40);

      const before = load.between(0, brokenMs).slice(-50);
      const during = load.between(brokenMs, mendedMs);
      const recoveryMs = recovered.sentMs - answerableMs;
      const inPart = flood.samples.filter(({ decision }) => decision.outcome === 'uncounted');
      const fullest = fullestSecond(inPart);
      rows.push({ ...rowOf(fault, before, during, recoveryMs), fullestPart: fullest / PART });
      expectPossible(fault, load.reasons);
      expectLatencies(during);
      expect(fullest).toBeLessThanOrEqual(PART);
      expectRefusals(flood.between(brokenMs, mendedMs), mendedMs - brokenMs);
      if (JUDGES_RECOVERY) expect(recoveryMs).toBeLessThan(RECOVERED_MS);
    },
  );
});

function expectPossible(fault: Fault, seen: readonly string[]): void {
  const possible = [...fault.reasons, ...(fault.alsoPossible ?? []), ...ALWAYS_POSSIBLE];
  expect(possible).toEqual(expect.arrayContaining([...seen]));
}

/**
 * No charge waits longer than the deadline, and only the first few wait at all. A wait is measured by the charges that were sent
 * meanwhile, because a busy machine makes this process pause.
 */
function expectLatencies(during: readonly Sample[]): void {
  const waits = during
    .filter(({ overtakenBy, decision }) => overtakenBy > WITHOUT_WAITING && decision.outcome === 'uncounted')
    .map(({ overtakenBy }) => overtakenBy);
  expect(percentile(waits, 0.8)).toBeLessThanOrEqual(WITHIN_DEADLINE);
  expect(waits.length).toBeLessThan(2 * FIRST_FEW + during.length * 0.05);
}

/** What does not fit the part is refused without a wait. */
function expectRefusals(flooding: readonly Sample[], outageMs: number): void {
  const away = flooding.filter(({ decision }) => !isCountedBy(decision));
  const refused = away.filter(({ decision }) => decision.outcome === 'denied');
  const seconds = Math.ceil(outageMs / 1_000) + 1;
  expect(refused.length).toBeGreaterThanOrEqual(away.length - seconds * PART);
  expectLatencies(away);
}

function rowOf(
  fault: Fault,
  before: readonly Sample[],
  during: readonly Sample[],
  recoveryMs: number,
): Omit<FaultRow, 'fullestPart'> {
  const p99 = (samples: readonly Sample[]) =>
    percentile(
      samples.map(({ latencyMs }) => latencyMs),
      0.99,
    );
  const uncounted = during.filter(({ decision }) => decision.outcome === 'uncounted');
  return {
    name: fault.name,
    reasons: reasonsOf(during),
    uncountedShare: during.length === 0 ? 0 : uncounted.length / during.length,
    slowestMs: Math.max(0, ...uncounted.map(({ latencyMs }) => latencyMs)),
    addedP99Ms:
      p99(during) -
      percentile(
        before.map(({ latencyMs }) => latencyMs),
        0.5,
      ),
    laterP99Ms: p99(during.slice(2 * FIRST_FEW)),
    recoveryMs,
  };
}

import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, expect, onTestFinished, test } from 'vitest';
import { openStore } from '../../src/store/open.ts';
import { uniquePrefix } from '../fixtures/redis-url.ts';
import { DEADLINE_MS, type Fault } from './fault.ts';
import { lineFaults } from './line-faults.ts';
import { Load, percentile, type Sample } from './load.ts';
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
/** What a loaded test machine may add to anything. */
const SLACK_MS = 60;
/** Charges sent before the breaker opens, one each 5 ms: a deadline's worth, and the three that open it. */
const FIRST_FEW = 20;

/** At the edges of an outage, and on a machine that is busy with other tests. */
const ALWAYS_POSSIBLE = ['disconnected', 'deadline'];

const faults: readonly Fault[] = [...serverFaults, ...lineFaults, ...topologyFaults];
const rows: FaultRow[] = [];

afterAll(() => saveFaultTable(rows, OUTAGE_MS));

test.each(faults)(
  '$name: requests go on uncounted, and counting comes back',
  { timeout: 120_000 },
  async (fault) => {
    const faulty = await fault.start();
    const store = openStore(faulty.settings);
    const load = new Load(store, uniquePrefix());
    onTestFinished(async () => {
      load.stop();
      await store.close();
      await faulty.stop();
    });
    await load.until(true, 0, 60);

    const brokenMs = performance.now();
    await faulty.break();
    if (fault.reasons.length > 0) await load.until(false, brokenMs, 1);
    await pause(OUTAGE_MS);
    const mendedMs = performance.now();
    await faulty.repair();
    const answerableMs = performance.now();
    const recovered = await load.until(true, answerableMs, 40);

    const before = load.between(0, brokenMs).slice(-50);
    const during = load.between(brokenMs, mendedMs);
    const recoveryMs = recovered.sentMs - answerableMs;
    rows.push(rowOf(fault, before, during, recoveryMs));
    expectReasons(fault, load.samples);
    expectLatencies(during);
    if (JUDGES_RECOVERY) expect(recoveryMs).toBeLessThan(fault.recoveryMs);
  },
);

function expectReasons(fault: Fault, samples: readonly Sample[]): void {
  const seen = reasonsOf(samples);
  expect(seen).toEqual(expect.arrayContaining([...fault.reasons]));
  const possible = [...fault.reasons, ...(fault.alsoPossible ?? []), ...ALWAYS_POSSIBLE];
  expect(possible).toEqual(expect.arrayContaining(seen));
}

/**
 * No charge waits longer than the deadline, and only the first few wait at all. Up to three of a hundred may show a pause
 * of this process itself, which a busy machine gives less than a core.
 */
function expectLatencies(during: readonly Sample[]): void {
  const latencies = during.map(({ latencyMs }) => latencyMs);
  expect(percentile(latencies, 0.97)).toBeLessThan(DEADLINE_MS + SLACK_MS);
  const waited = during.filter(
    ({ latencyMs, decision }) => latencyMs > 15 && decision.outcome === 'uncounted',
  );
  expect(waited.length).toBeLessThan(2 * FIRST_FEW + during.length * 0.05);
}

function rowOf(
  fault: Fault,
  before: readonly Sample[],
  during: readonly Sample[],
  recoveryMs: number,
): FaultRow {
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

function reasonsOf(samples: readonly Sample[]): string[] {
  const reasons = samples.map(({ decision }) => (decision.outcome === 'uncounted' ? decision.reason : ''));
  return [...new Set(reasons)].filter((reason) => reason !== '').sort();
}

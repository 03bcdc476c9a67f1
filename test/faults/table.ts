import { hardware } from '../../bench/lab/machine.ts';
import { writeSection } from '../../bench/report/section.ts';

/** One line of the table of failures. */
export interface FaultRow {
  readonly name: string;
  readonly reasons: readonly string[];
  readonly uncountedShare: number;
  readonly slowestMs: number;
  /** The p99 of all charges while it lasted, less the median of those before. */
  readonly addedP99Ms: number;
  /** Of the charges after the first few. */
  readonly laterP99Ms: number;
  readonly recoveryMs: number;
  /** With `share`: what this replica served uncounted of a flood in its fullest second, over its part of the limit. */
  readonly fullestPart: number;
}

/** Prints the table; `WEIR_WRITE_RESULTS=1` puts it into bench/RESULTS.md as well. */
export function saveFaultTable(rows: readonly FaultRow[], outageMs: number): void {
  const table = faultTable(rows, outageMs);
  console.log(`${table}\n`);
  if (process.env.WEIR_WRITE_RESULTS !== '1') return;
  const head = `## A failing store\n\n${new Date().toISOString().slice(0, 16).replace('T', ' ')} UTC, \`npm run bench:faults\`, ${hardware()}.`;
  writeSection('faults', `${head}\n${table}`);
}

/** What four replicas let through while the store was away, with `share`. Windows are of one second, over the limit. */
export interface ShareRow {
  readonly name: string;
  readonly requests: number;
  /** Without an answer, or with a 5xx. */
  readonly failed: number;
  /** Within the outage, the first window after the cut left out. */
  readonly fullest: number;
  /** Of all windows, those at the edges of the outage included. */
  readonly straddling: number;
  /** After the first whole window that was counted again. */
  readonly after: number;
  readonly floodP99Ms: number;
  /** Of an Account without a limit to speak of, at the same time. */
  readonly otherP99Ms: number;
  /** Until the first request that was counted, at the replica that counted last. */
  readonly recoveryMs: number;
}

/** How long two replicas take to see a third that starts, and to miss it when it is killed. */
export interface SeenAfter {
  readonly startMs: number;
  readonly deathMs: number;
}

/** Prints the table; `WEIR_WRITE_RESULTS=1` puts it into bench/RESULTS.md as well. */
export function saveShareTable(
  rows: readonly ShareRow[],
  seen: SeenAfter | undefined,
  outageMs: number,
): void {
  const table = [
    `Four replicas with \`onStoreFailure: share\`, outages of ${outageMs / 1_000} s, one Account that sends ten times its limit of 12`,
    'requests per second, 53, 27, 13 and 7 % of them to each replica, and a quarter as many requests of another Account; all in one process.',
    '',
    '| outage | requests | failed | fullest second within it, over the limit | at its edges | after it | p99 of the flood, ms | of the others | counts again after, ms |',
    '|---|--:|--:|--:|--:|--:|--:|--:|--:|',
    ...rows.map((row) => {
      const shares = [row.fullest, row.straddling, row.after].map((share) => share.toFixed(2));
      const times = [row.floodP99Ms, row.otherP99Ms].map((ms) => ms.toFixed(1));
      return `| ${[row.name, row.requests, row.failed, ...shares, ...times, row.recoveryMs.toFixed(0)].join(' | ')} |`;
    }),
    ...(seen === undefined
      ? []
      : [
          '',
          `Two replicas saw a third ${seen.startMs.toFixed(0)} ms after it listened, and missed it ${seen.deathMs.toFixed(0)} ms after \`kill -9\`, while Redis was too slow for`,
          'charges (80 ms a round trip). While nothing answered, they divided by the last number.',
        ]),
  ].join('\n');
  console.log(`${table}\n`);
  if (process.env.WEIR_WRITE_RESULTS !== '1') return;
  const head = `## Limits without a store\n\n${new Date().toISOString().slice(0, 16).replace('T', ' ')} UTC, \`WEIR_TEST_OUTAGE_MS=${outageMs} WEIR_WRITE_RESULTS=1 npx vitest run test/faults/replicas-share-limits.test.ts\`,\n${hardware()}.`;
  writeSection('share', `${head}\n${table}`);
}

function faultTable(rows: readonly FaultRow[], outageMs: number): string {
  const ms = (value: number) => (Math.abs(value) < 10 ? value.toFixed(1) : value.toFixed(0));
  return [
    `Outages of ${outageMs} ms, one charge each 5 ms, deadline 25 ms; times in ms.`,
    'Last column: with `share`, of an Account with a limit of 100 that sends 200 a second to one replica of four.',
    '',
    '| failure | reasons | uncounted | slowest uncounted | added p99 | p99 after the first 40 charges | counts again after | fullest second over the part |',
    '|---|---|---|---|---|---|---|---|',
    ...rows.map(
      (row) =>
        `| ${row.name} | ${row.reasons.join(', ') || 'none'} | ${(row.uncountedShare * 100).toFixed(0)} % | ${ms(row.slowestMs)} | ${ms(row.addedP99Ms)} | ${ms(row.laterP99Ms)} | ${ms(row.recoveryMs)} | ${row.fullestPart.toFixed(2)} |`,
    ),
  ].join('\n');
}

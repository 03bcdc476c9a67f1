import { writeSection } from '../../bench/counter/section.ts';
import { hardware } from '../../bench/lab/machine.ts';

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
}

/** Prints the table; `WEIR_WRITE_RESULTS=1` puts it into bench/RESULTS.md as well. */
export function saveFaultTable(rows: readonly FaultRow[], outageMs: number): void {
  const table = faultTable(rows, outageMs);
  console.log(`${table}\n`);
  if (process.env.WEIR_WRITE_RESULTS !== '1') return;
  const head = `## A failing store\n\n${new Date().toISOString().slice(0, 16).replace('T', ' ')} UTC, \`npm run bench:faults\`, ${hardware()}.`;
  writeSection('faults', `${head}\n${table}`);
}

function faultTable(rows: readonly FaultRow[], outageMs: number): string {
  const ms = (value: number) => (Math.abs(value) < 10 ? value.toFixed(1) : value.toFixed(0));
  return [
    `Outages of ${outageMs} ms, one charge each 5 ms, deadline 25 ms; times in ms.`,
    '',
    '| failure | reasons | uncounted | slowest uncounted | added p99 | p99 after the first 40 charges | counts again after |',
    '|---|---|---|---|---|---|---|',
    ...rows.map(
      (row) =>
        `| ${row.name} | ${row.reasons.join(', ') || 'none'} | ${(row.uncountedShare * 100).toFixed(0)} % | ${ms(row.slowestMs)} | ${ms(row.addedP99Ms)} | ${ms(row.laterP99Ms)} | ${ms(row.recoveryMs)} |`,
    ),
  ].join('\n');
}

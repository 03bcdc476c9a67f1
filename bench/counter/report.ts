import { mkdirSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { hardware } from '../lab/machine.ts';
import type { AccuracyRow } from './accuracy.ts';
import { drawAccuracy } from './plot.ts';
import type { CostRow, SizeRow } from './script-cost.ts';
import { writeSection } from './section.ts';
import type { ThroughputRow } from './throughput.ts';

const FOLDER = fileURLToPath(new URL('../results/', import.meta.url));

export interface CounterResults {
  readonly accuracy: readonly AccuracyRow[];
  readonly throughput: readonly ThroughputRow[];
  readonly costs: readonly CostRow[];
  readonly sizes: readonly SizeRow[];
}

/** Writes the counter's section of RESULTS.md, and its plot. */
export function writeCounterReport(results: CounterResults, command: string): void {
  mkdirSync(FOLDER, { recursive: true });
  writeFileSync(`${FOLDER}counter-accuracy.svg`, drawAccuracy(results.accuracy));
  const text = [
    '## The counter',
    '',
    `${new Date().toISOString().slice(0, 16).replace('T', ' ')} UTC, \`${command}\`, ${hardware()}, Node ${process.versions.node}.`,
    'These machines are shared and noisy: compare figures of one table, not of two runs.',
    '',
    accuracyTable(results.accuracy),
    '',
    '![The fullest window over the limit, by pattern and counter](results/counter-accuracy.svg)',
    '',
    throughputTable(results.throughput),
    '',
    scriptTables(results.costs, results.sizes),
  ].join('\n');
  writeSection('counter', text);
}

function accuracyTable(rows: readonly AccuracyRow[]): string {
  const names = [...(rows[0]?.verdicts.keys() ?? [])];
  return [
    '**Accuracy.** Limit 500 points in any second, three replicas, one Redis, the same requests at the same moments through every counter. First',
    'figure: points in the fullest window over the limit (only what was certainly decided inside it). Second: points admitted over what an exact',
    'sliding log admits of the same arrivals. Slow answers blur the second figure, not the first; of several replays the one with the fastest counts.',
    '',
    `| arrivals | ${names.join(' | ')} | p99 of answers |`,
    `|---|${'---|'.repeat(names.length)}---|`,
    ...rows.map(({ pattern, verdicts, answerMs }) => {
      const cells = names.map((name) => {
        const verdict = verdicts.get(name);
        return verdict === undefined
          ? 'cannot'
          : `${verdict.worstWindow.toFixed(3)} / ${verdict.usefulShare.toFixed(3)}`;
      });
      return `| ${pattern} | ${cells.join(' | ')} | ${answerMs.toFixed(0)} ms |`;
    }),
  ].join('\n');
}

function throughputTable(rows: readonly ThroughputRow[]): string {
  return [
    '**Cost of a decision.** Two buckets (one where said), 1,000 accounts of 50 organizations, all admitted, one client process, medians of three rounds.',
    '',
    '| counter | at once | decisions/s | Redis CPU, µs | client CPU, µs |',
    '|---|---|---|---|---|',
    ...rows.map(
      ({ name, concurrency, decisionsPerSecond, redisUs, clientUs }) =>
        `| ${name} | ${concurrency} | ${Math.round(decisionsPerSecond).toLocaleString('en')} | ${redisUs.toFixed(1)} | ${clientUs.toFixed(1)} |`,
    ),
  ].join('\n');
}

function scriptTables(costs: readonly CostRow[], sizes: readonly SizeRow[]): string {
  return [
    '**charge.lua**, one decision a call, by `INFO commandstats`; the least of five runs.',
    '',
    '| state | buckets | µs a call |',
    '|---|---|---|',
    ...costs.map(({ state, buckets, usPerCall }) => `| ${state} | ${buckets} | ${usPerCall.toFixed(1)} |`),
    '',
    'Bytes of a bucket by `MEMORY USAGE`, key and expiry included.',
    '',
    '| state | bytes |',
    '|---|---|',
    ...sizes.map(({ state, bytes }) => `| ${state} | ${bytes} |`),
  ].join('\n');
}

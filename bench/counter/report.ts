import { mkdirSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { provenance } from '../lab/machine.ts';
import { writeSection } from '../report/section.ts';
import type { AccuracyRow } from './accuracy.ts';
import type { ClusterRow } from './cluster.ts';
import type { FaultRow } from './faults.ts';
import { type LeastUseful, leastUsefulText } from './least-useful-text.ts';
import { drawAccuracy } from './plot.ts';
import type { CostRow, SizeRow } from './script-cost.ts';
import type { ThroughputRow } from './throughput.ts';

const FOLDER = fileURLToPath(new URL('../results/', import.meta.url));

export interface CounterResults {
  readonly accuracy: readonly AccuracyRow[];
  readonly least: LeastUseful;
  readonly faults: readonly FaultRow[];
  readonly throughput: readonly ThroughputRow[];
  readonly cluster: readonly ClusterRow[];
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
    `${provenance(command)}.`,
    'These machines are shared and noisy: compare figures of one table, not of two runs.',
    '',
    accuracyTable(results.accuracy),
    '',
    '![The fullest window over the limit, by pattern and counter](results/counter-accuracy.svg)',
    '',
    leastUsefulText(results.least),
    '',
    faultTable(results.faults),
    '',
    throughputTable(results.throughput),
    '',
    clusterTable(results.cluster),
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
    'sliding log admits of the same requests, least and most: as if each was decided when it was sent, and as if when it was answered. The slower',
    'the answers, the further apart are the two; of several replays the one with the fastest counts. How useful the counter is at worst, with',
    'exact clocks, is below.',
    '',
    `| arrivals | ${names.join(' | ')} | p99 of answers |`,
    `|---|${'---|'.repeat(names.length)}---|`,
    ...rows.map(({ pattern, verdicts, answerMs }) => {
      const cells = names.map((name) => {
        const verdict = verdicts.get(name);
        return verdict === undefined
          ? 'cannot'
          : `${verdict.worstWindow.toFixed(3)} / ${range(verdict.usefulShare)}`;
      });
      return `| ${pattern} | ${cells.join(' | ')} | ${answerMs.toFixed(0)} ms |`;
    }),
  ].join('\n');
}

/** One number where both are the same as written. */
function range(bounds: readonly number[]): string {
  return [...new Set(bounds.map((bound) => bound.toFixed(3)))].join('–');
}

function faultTable(rows: readonly FaultRow[]): string {
  return [
    '**Two faults of Redis.** Points admitted in the fullest window over the limit of 100. Split brain: a replica is cut off and promoted, and one',
    'gateway beside each primary asks for the whole limit in every window; in the first four seconds, and in the next four. Memory: one bucket of 100 points while',
    '120,000 others fill a Redis of 4 MB; after a quarter of them, and after all. Degraded: charges that Redis refused to count.',
    '',
    '| fault | setting of Redis | at first | later | degraded |',
    '|---|---|--:|--:|--:|',
    ...rows.map(
      ({ fault, setting, atFirst, later, degradedShare }) =>
        `| ${fault} | ${setting} | ${atFirst.toFixed(2)} | ${later.toFixed(2)} | ${Math.round(degradedShare * 100)} % |`,
    ),
  ].join('\n');
}

function clusterTable(rows: readonly ClusterRow[]): string {
  return [
    '**In a Cluster of six nodes.** Two buckets, 1,000 organizations in turn. A call cannot span slots, so nearly every decision is a call of its own;',
    'those of one turn that go to one node leave in one write.',
    '',
    '| at once | decisions/s | decisions in one read of a node | client CPU, µs |',
    '|--:|--:|--:|--:|',
    ...rows.map(
      ({ concurrency, decisionsPerSecond, decisionsPerRead, clientUs }) =>
        `| ${concurrency} | ${Math.round(decisionsPerSecond).toLocaleString('en')} | ${decisionsPerRead.toFixed(1)} | ${clientUs.toFixed(1)} |`,
    ),
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
    '**charge.lua**, one decision a call, by `INFO commandstats`; the least of 60 runs of 500 calls, in turn with those of the script of 0.2.0, which',
    'had one window for all buckets. The first two buckets have a window of a second, the others of a minute, an hour and 30 days. Last column: the',
    "median of 60 ratios of neighbouring runs, for more than two buckets to 0.2.0's script with two.",
    '',
    '| state | buckets | µs a call | 0.2.0 | beside 0.2.0 |',
    '|---|--:|--:|--:|--:|',
    ...costs.map(({ state, buckets, usPerCall, usBefore, ratio }) => {
      const figures = [usPerCall.toFixed(1), usBefore?.toFixed(1) ?? '', ratio?.toFixed(2) ?? ''];
      return `| ${[state, buckets, ...figures].join(' | ')} |`;
    }),
    '',
    'Bytes of a bucket by `MEMORY USAGE`, key and expiry included.',
    '',
    '| state | bytes |',
    '|---|---|',
    ...sizes.map(({ state, bytes }) => `| ${state} | ${bytes} |`),
  ].join('\n');
}

import { existsSync } from 'node:fs';
import { readSummary } from '../k6/k6.ts';
import { percentile } from '../lab/turns.ts';
import { table, thousands } from '../report/section.ts';
import { ACCOUNTS } from './fleet.ts';
import { type EventKind, type Run, type Sample, unexplainedFailures } from './run.ts';
import { slopeOf } from './slope.ts';

/** The lines of the soak's section. `summaryFile` is k6's. */
export function linesOf(run: Run, summaryFile: string): string[] {
  const { samples, events, seconds, rate } = run;
  const first = samples.find((sample) => sample.seconds >= seconds / 12) ?? samples[0];
  const last = samples.at(-1);
  const sum = (read: (seen: Sample['seen']) => number) =>
    samples.reduce((total, { seen }) => total + read(seen), 0);
  const most = (read: (sample: Sample) => number) => Math.max(...samples.map(read));
  const p99s = samples.filter(({ seen }) => seen.requests > 0).map(({ seen }) => seen.p99Ms);
  const loads = samples.map(({ load }) => load);
  const stays = (sample: Sample | undefined) => sample?.replicas[0];
  const count = (kind: EventKind) => events.filter((event) => event.kind === kind).length;
  const slowest = (kind: EventKind) =>
    Math.max(
      0,
      ...events.filter((event) => event.kind === kind).map(({ tookSeconds }) => tookSeconds),
    ).toFixed(1);
  const reached = last?.seconds ?? 0;
  const failedChecks = samples.reduce((total, { failedAtSeconds }) => total + failedAtSeconds.length, 0);
  const unexplained = unexplainedFailures(run).length;
  const settled = samples.filter((sample) => sample.seconds >= seconds / 12);
  const slope = slopeOf(settled.map((sample) => [sample.seconds / 3600, stays(sample)?.residentMb ?? 0]));
  const heapSlope = slopeOf(settled.map((sample) => [sample.seconds / 3600, sample.heapMb]));
  const rows: readonly (readonly [string, string])[] = [
    ['requests', thousands(sum((seen) => seen.requests))],
    [
      'failed checks of a status, a header or a body, within 2 s of the death of a replica; at other times',
      `${thousands(failedChecks - unexplained)}; ${thousands(unexplained)}`,
    ],
    ['responses with another status than 200 and 429, 0 for none', statusesOf(samples)],
    ['refused with 429, as the limits demand', thousands(sum((seen) => seen.refused))],
    [
      'served uncounted: Redis was failing over or started empty, or did not answer within the deadline of 25 ms',
      thousands(sum((seen) => seen.degraded)),
    ],
    ['not sent, because the load generator had no free client', thousands(sum((seen) => seen.dropped))],
    ['fullest second of an Account over its limit', most(({ seen }) => seen.fullest.account).toFixed(3)],
    [
      'fullest second of an Organization over its limit',
      most(({ seen }) => seen.fullest.organization).toFixed(3),
    ],
    [
      'p99 of an interval, slow answers left out, ms: median, worst',
      `${percentile(p99s, 0.5).toFixed(1)}, ${percentile(p99s, 1).toFixed(1)}`,
    ],
    [
      'load average of the machine: least, median, most',
      [0, 0.5, 1].map((share) => percentile(loads, share).toFixed(1)).join(', '),
    ],
    [
      `memory of the replica that stays, MB: after ${((first?.seconds ?? 0) / 60).toFixed(0)} min, at the end, most`,
      `${mb(stays(first)?.residentMb)}, ${mb(stays(last)?.residentMb)}, ${mb(most((sample) => stays(sample)?.residentMb ?? 0))}`,
    ],
    [
      'slope of that memory from then on, MB an hour, with 95 % confidence',
      `${slope.perUnit.toFixed(1)} ± ${slope.within.toFixed(1)}`,
    ],
    [
      'slope of its heap after a forced collection, likewise',
      `${heapSlope.perUnit.toFixed(1)} ± ${heapSlope.within.toFixed(1)}`,
    ],
    [
      'its open handles: then, at the end, most',
      `${stays(first)?.handles}, ${stays(last)?.handles}, ${most((sample) => stays(sample)?.handles ?? 0)}`,
    ],
    [
      'changes of the limits; slowest until in force at all replicas',
      `${count('reload')}; ${slowest('reload')} s`,
    ],
    ['deploys that replace two replicas; slowest', `${count('deploy')}; ${slowest('deploy')} s`],
    [
      'failovers of Redis; slowest until the killed primary was a replica',
      `${count('failover')}; ${slowest('failover')} s`,
    ],
    ['replicas killed; slowest until replaced', `${count('kill')}; ${slowest('kill')} s`],
    [
      'losses of all that Redis has; slowest until it has a replica',
      `${count('loss')}; ${slowest('loss')} s`,
    ],
    ...countedRows(run.ended),
  ];
  return [
    `${run.date.slice(0, 16).replace('T', ' ')} UTC, ${minutes(reached)} minutes at ${rate} requests/s, ${run.hardware}, Node ${run.node}.`,
    'Three replicas behind HAProxy, which repeats no request, and a Redis with a replica and a Sentinel. One replica of Weir stays; deploys replace',
    'the other two while requests arrive, and one of these is killed at times.',
    `Of ${thousands(ACCOUNTS)} Accounts, most stay below their limits. One Account and one Organization send more, and one Account asks for slow answers.`,
    'A tenth of the requests has a cost that is settled. The points of a month are in a journal.',
    outcomeOf(run, reached, summaryFile),
    '',
    ...table(['', ':'], rows),
    '',
    '![Latency, load, memory and handles over time](results/soak.svg)',
  ];
}

function countedRows(ended: Run['ended']): readonly (readonly [string, string])[] {
  if (ended === undefined) return [];
  const { points, busiest, slots } = ended;
  return [
    [
      "points of this month, by the clients' answers; in the invoices",
      `${thousands(points.answered)}; ${thousands(points.invoiced)}`,
    ],
    [
      "the busiest Organization's: in the invoices; in Redis",
      `${thousands(busiest.invoiced)}; ${thousands(busiest.inRedis)}`,
    ],
    ['slots that are taken although no request runs', `${slots}`],
  ];
}

function outcomeOf({ ended, seconds }: Run, reachedSeconds: number, summaryFile: string): string {
  if (ended === undefined) {
    return `The figures are of the first ${minutes(reachedSeconds)} of ${minutes(seconds)} minutes.`;
  }
  const broken = ended.thresholdsKept || !existsSync(summaryFile) ? [] : brokenThresholds(summaryFile);
  const outcome = ended.thresholdsKept ? 'kept' : `broken: ${broken.join(', ')}`;
  return `k6's thresholds were ${outcome} ([summary](results/k6/soak.json)).`;
}

/** By k6's summary: `dropped_iterations rate<0.5`. */
function brokenThresholds(summaryFile: string): string[] {
  const { metrics } = readSummary(summaryFile);
  return Object.entries(metrics).flatMap(([name, { thresholds = {} }]) =>
    Object.entries(thresholds).flatMap(([rule, { ok }]) => (ok ? [] : [`\`${name}: ${rule}\``])),
  );
}

/** `none`, or `503: 388`. */
function statusesOf(samples: readonly Sample[]): string {
  const counts = new Map<string, number>();
  for (const { seen } of samples) {
    for (const [status, count] of Object.entries(seen.statuses)) {
      counts.set(status, (counts.get(status) ?? 0) + count);
    }
  }
  const texts = [...counts].map(([status, count]) => `${status}: ${thousands(count)}`);
  return texts.length === 0 ? 'none' : texts.join(', ');
}

function minutes(seconds: number): string {
  return (seconds / 60).toFixed(0);
}

function mb(value: number | undefined): string {
  return (value ?? 0).toFixed(0);
}

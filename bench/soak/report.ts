import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { writeSection } from '../counter/section.ts';
import { drawLines, type Panel } from '../report/lines.ts';
import type { Seen } from './requests.ts';

const FOLDER = fileURLToPath(new URL('../results', import.meta.url));
const RUN_FILE = join(FOLDER, 'soak.json');
const PLOT_FILE = join(FOLDER, 'soak.svg');
/** k6's own summary. */
export const SUMMARY_FILE = join(FOLDER, 'k6', 'soak.json');

export interface Run {
  readonly date: string;
  readonly hardware: string;
  readonly node: string;
  /** Requests per second. */
  readonly rate: number;
  readonly seconds: number;
  readonly samples: Sample[];
  readonly events: Event[];
  /** Undefined while it runs. */
  ended: { readonly thresholdsKept: boolean } | undefined;
}

/** The state at one moment, and what clients saw since the one before. */
export interface Sample {
  readonly seconds: number;
  /** The machine's load average over a minute. */
  readonly load: number;
  readonly redisMb: number;
  /** The first one stays for the whole run. */
  readonly replicas: readonly {
    readonly name: string;
    readonly residentMb: number;
    readonly handles: number;
  }[];
  readonly seen: Seen;
}

export interface Event {
  readonly kind: 'redis' | 'reload' | 'rollout';
  readonly seconds: number;
  tookSeconds: number;
}

/** Writes what is known so far, so that a run that is cut short leaves its figures. */
export function saveRun(run: Run): void {
  mkdirSync(join(FOLDER, 'k6'), { recursive: true });
  writeFileSync(RUN_FILE, `${JSON.stringify(run, null, 1)}\n`);
}

/** Writes the raw figures, the plot, and the soak's section of RESULTS.md. */
export function writeReport(run: Run): void {
  saveRun(run);
  writeFileSync(PLOT_FILE, plotOf(run));
  writeSection('soak', sectionOf(run));
}

const EVENT_NAMES = { redis: 'Redis restarted', reload: 'limits changed', rollout: 'replicas replaced' };

function plotOf({ samples, events, hardware, date, rate }: Run): string {
  const line = (name: string, read: (sample: Sample) => number | undefined) => ({
    name,
    points: samples.flatMap((sample): [number, number][] => {
      const value = read(sample);
      return value === undefined ? [] : [[sample.seconds / 60, value]];
    }),
  });
  const panels: Panel[] = [
    {
      title: 'Latency of an interval, ms',
      lines: [line('p99', ({ seen }) => seen.p99Ms), line('p50', ({ seen }) => seen.p50Ms)],
    },
    { title: 'Load average of the machine', lines: [line('one minute', ({ load }) => load)] },
    {
      title: 'Resident memory, MB',
      lines: [
        line('replica that stays', ({ replicas }) => replicas[0]?.residentMb),
        line('newest replica', ({ replicas }) => replicas.at(-1)?.residentMb),
        line('Redis', ({ redisMb }) => redisMb || undefined),
      ],
    },
    {
      title: 'Open handles',
      lines: [
        line('replica that stays', ({ replicas }) => replicas[0]?.handles),
        line('newest replica', ({ replicas }) => replicas.at(-1)?.handles),
      ],
    },
  ];
  return drawLines({
    title: 'Soak',
    subtitle: `${rate} requests/s through three replicas, with other work on the machine; ${hardware}, ${date.slice(0, 10)}`,
    across: 'minutes',
    panels,
    marks: events.map(({ kind, seconds }) => ({ name: EVENT_NAMES[kind], x: seconds / 60 })),
  });
}

function sectionOf(run: Run): string {
  const { samples, events, seconds, rate } = run;
  const first = samples.find((sample) => sample.seconds >= seconds / 12) ?? samples[0];
  const last = samples.at(-1);
  const sum = (read: (seen: Seen) => number) => samples.reduce((total, { seen }) => total + read(seen), 0);
  const most = (read: (sample: Sample) => number) => Math.max(...samples.map(read));
  const p99s = samples.filter(({ seen }) => seen.requests > 0).map(({ seen }) => seen.p99Ms);
  const p99 = (share: number) => sorted(p99s)[Math.floor((p99s.length - 1) * share)] ?? 0;
  const loads = samples.map(({ load }) => load);
  const stays = (sample: Sample | undefined) => sample?.replicas[0];
  const count = (kind: Event['kind']) => events.filter((event) => event.kind === kind).length;
  const slowest = (kind: Event['kind']) =>
    Math.max(
      0,
      ...events.filter((event) => event.kind === kind).map(({ tookSeconds }) => tookSeconds),
    ).toFixed(1);
  const reached = last?.seconds ?? 0;
  const rows: readonly (readonly [string, string])[] = [
    ['requests', thousands(sum((seen) => seen.requests))],
    [
      'responses that broke a check: a status other than 200 or 429, a header or a body',
      `${sum((seen) => seen.failed)}`,
    ],
    ['refused with 429, as the limits demand', thousands(sum((seen) => seen.refused))],
    [
      'served uncounted: Redis was away, or a busy machine answered after the deadline of 25 ms',
      thousands(sum((seen) => seen.degraded)),
    ],
    ['not sent, because the load generator had no free client', `${sum((seen) => seen.dropped)}`],
    ['fullest second of an Account over its limit', most(({ seen }) => seen.fullest.account).toFixed(3)],
    [
      'fullest second of an Organization over its limit',
      most(({ seen }) => seen.fullest.organization).toFixed(3),
    ],
    ['p99 of an interval, ms: median, worst', `${p99(0.5).toFixed(1)}, ${p99(1).toFixed(1)}`],
    [
      'load average of the machine: least, median, most',
      [0, 0.5, 1]
        .map((share) => (sorted(loads)[Math.floor((loads.length - 1) * share)] ?? 0).toFixed(1))
        .join(', '),
    ],
    [
      `memory of the replica that stays, MB: after ${((first?.seconds ?? 0) / 60).toFixed(0)} min, at the end, most`,
      `${mb(stays(first)?.residentMb)}, ${mb(stays(last)?.residentMb)}, ${mb(most((sample) => stays(sample)?.residentMb ?? 0))}`,
    ],
    [
      'its open handles: then, at the end, most',
      `${stays(first)?.handles}, ${stays(last)?.handles}, ${most((sample) => stays(sample)?.handles ?? 0)}`,
    ],
    ['restarts of Redis, away for 3 s each', `${count('redis')}`],
    [
      'changes of the limits; slowest until in force at all replicas',
      `${count('reload')}; ${slowest('reload')} s`,
    ],
    ['rollouts of two replicas; slowest', `${count('rollout')}; ${slowest('rollout')} s`],
  ];
  const ended = run.ended;
  const state =
    ended === undefined
      ? `The run was cut short after ${(reached / 60).toFixed(0)} of ${(seconds / 60).toFixed(0)} minutes.`
      : `k6's thresholds were ${ended.thresholdsKept ? 'kept' : 'broken'}${existsSync(SUMMARY_FILE) ? ': [its summary](results/k6/soak.json)' : ''}.`;
  return [
    '## Soak',
    '',
    `${run.date.slice(0, 16).replace('T', ' ')} UTC, \`npm run bench:soak\`, ${(reached / 60).toFixed(0)} minutes at ${rate} requests/s, ${run.hardware}, Node ${run.node}.`,
    'Three replicas behind HAProxy, which repeats no request. One replica stays; rollouts replace the other two while requests arrive.',
    'Most Accounts stay below their limits; one sends five times its own, and one Organization almost twice its own.',
    `The machine was busy with other work, so latencies vary with its load. ${state}`,
    '',
    '| | |',
    '|---|--:|',
    ...rows.map(([what, figure]) => `| ${what} | ${figure} |`),
    '',
    '![Latency, load, memory and handles over time](results/soak.svg)',
  ].join('\n');
}

function sorted(numbers: readonly number[]): number[] {
  return [...numbers].sort((one, other) => one - other);
}

function mb(value: number | undefined): string {
  return (value ?? 0).toFixed(0);
}

function thousands(value: number): string {
  return value.toLocaleString('en');
}

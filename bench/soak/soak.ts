import { readFileSync } from 'node:fs';
import { loadavg } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { createDatabase, findPostgres, startPostgres } from '../../platform/test/fixtures/postgres.ts';
import type { Usage } from '../../src/admin/usage/owner-usage.ts';
import { findK6 } from '../k6/k6.ts';
import type { Bench } from '../lab/bench.ts';
import { hardware } from '../lab/machine.ts';
import { openHandles, residentBytes } from '../lab/process-table.ts';
import type { Limits } from '../load/two-buckets.ts';
import { resultFile, writeResult } from '../report/section.ts';
import { ACCOUNTS, BUSIEST_ORGANIZATION, Fleet } from './fleet.ts';
import { plotOf } from './plot.ts';
import { type ReplicatedRedis, startReplicatedRedis } from './redis.ts';
import { linesOf } from './report.ts';
import { type Requests, startRequests } from './requests.ts';
import {
  type Ending,
  type Event,
  type EventKind,
  isAllCounted,
  type Run,
  type Sample,
  unexplainedFailures,
} from './run.ts';

/** The limits in force in turn. */
const LIMITS: readonly [Limits, Limits] = [
  { account: 20, organization: 40 },
  { account: 25, organization: 50 },
];
const EVENTS = ['reload', 'deploy', 'failover', 'kill', 'loss'] as const;
const RATE = 300;

/** Events in a run, as long as there are 15 seconds from one to the next. */
const EVENT_COUNT = 24;
const LEAST_SECONDS = 15;

/**
 * Soaks three replicas behind one entry: limits change, replicas are replaced and killed, Redis fails over and loses everything, in turn.
 * With the path of a `soak.json` as its word, reports on an earlier run.
 */
export async function soak(bench: Bench): Promise<readonly string[]> {
  const [file] = bench.words;
  const summary = bench.isRecorded ? resultFile('k6/soak.json') : join(bench.folder, 'summary.json');
  const run: Run =
    file === undefined ? await soakNow(bench, summary) : JSON.parse(readFileSync(file, 'utf8'));
  if (bench.isRecorded) writeResult('soak.svg', plotOf(run));
  const isStrict = run.samples.every(
    ({ seen }) => Math.max(seen.fullest.account, seen.fullest.organization) <= 1,
  );
  const isSound = isStrict && isAllCounted(run) && unexplainedFailures(run).length === 0;
  if (run.ended?.thresholdsKept !== true || !isSound) process.exitCode = 1;
  return linesOf(run, summary);
}

async function soakNow(bench: Bench, summary: string): Promise<Run> {
  const { seconds } = bench;
  findK6();
  const binaries = findPostgres();
  if (binaries === undefined) throw new Error('PostgreSQL is not installed.');
  const upstream = await bench.upstream();
  const redis = bench.endWith(await startReplicatedRedis());
  const postgres = bench.endWith(await startPostgres(binaries));
  const shared = {
    upstreamPort: upstream.port,
    store: redis.store,
    journalUrl: await createDatabase(postgres.url),
  };
  const fleet = bench.endWith(await Fleet.start(bench.folder, shared, LIMITS[0]));
  const run: Run = {
    date: new Date().toISOString(),
    hardware: hardware(),
    node: process.versions.node,
    rate: RATE,
    seconds,
    samples: [],
    events: [],
    ended: undefined,
  };
  const env = {
    TARGET: `http://127.0.0.1:${fleet.entry.port}`,
    SECONDS: `${seconds}`,
    SUMMARY: summary,
    RATE: `${RATE}`,
    ACCOUNTS: `${ACCOUNTS}`,
  };
  const startMs = Date.now();
  const requests = startRequests(env);
  const over = new AbortController();
  const save = () => {
    if (bench.isRecorded) writeResult('soak.json', run);
  };
  const sample = async () => {
    run.samples.push(await sampleNow(startMs, fleet, redis, requests));
    // So that a run that is cut short leaves its figures.
    save();
  };
  const sampling = sampleUntil(over.signal, run, sample);
  const disturbing = disturbUntil(over.signal, run, startMs, fleet, redis);
  const thresholdsKept = (await requests.ended) === 0;
  over.abort();
  await Promise.all([sampling, disturbing]);
  await sample();
  run.ended = { thresholdsKept, ...(await countedIn(fleet, run)) };
  save();
  return run;
}

/** Until the journal has what was charged last. */
const WRITTEN_MS = 5_000;

/** What was counted in the end: by the clients, in the invoices, and in Redis. */
async function countedIn(fleet: Fleet, { samples, date }: Run): Promise<Omit<Ending, 'thresholdsKept'>> {
  await setTimeout(WRITTEN_MS);
  const [csv = ''] = await fleet.ask(`/usage/export?period=${date.slice(0, 7)}`);
  const [usage = '{}'] = await fleet.ask(`/usage/organizations/${BUSIEST_ORGANIZATION}`);
  const metrics = await fleet.ask('/metrics');
  const invoiced = invoicedPoints(csv);
  const { buckets } = JSON.parse(usage) as Usage;
  const slots = metrics.flatMap((text) => [...text.matchAll(/^weir_requests_in_flight\{.*\} (\d+)$/gm)]);
  const sum = (numbers: Iterable<number>) => [...numbers].reduce((total, number) => total + number, 0);
  return {
    points: { answered: sum(samples.map(({ seen }) => seen.points)), invoiced: sum(invoiced.values()) },
    busiest: {
      invoiced: invoiced.get(BUSIEST_ORGANIZATION) ?? 0,
      inRedis: buckets.find(({ bucket }) => bucket === 'organization-month')?.used ?? 0,
    },
    slots: sum(slots.map(([, count]) => Number(count))),
  };
}

/** Points by owner, in an export of invoices. */
function invoicedPoints(csv: string): Map<string, number> {
  const [head = '', ...lines] = csv.trim().split('\r\n');
  const columns = head.split(',');
  const sums = new Map<string, number>();
  for (const line of lines) {
    const fields = line.split(',');
    const id = fields[columns.indexOf('id')] ?? '';
    sums.set(id, (sums.get(id) ?? 0) + Number(fields[columns.indexOf('points')]));
  }
  return sums;
}

async function sampleUntil(over: AbortSignal, run: Run, sample: () => Promise<void>): Promise<void> {
  const intervalMs = (Math.min(60, run.seconds / 24) || 1) * 1000;
  while (await waits(intervalMs, over)) {
    await sample();
    for (const last of run.samples.slice(-1)) process.stdout.write(`${progress(last)}\n`);
  }
}

async function sampleNow(
  startMs: number,
  fleet: Fleet,
  redis: ReplicatedRedis,
  requests: Requests,
): Promise<Sample> {
  const { failedAtMs, ...seen } = requests.take();
  return {
    seconds: (Date.now() - startMs) / 1000,
    load: loadavg()[0] ?? 0,
    heapMb: (await fleet.heapBytes()) / 2 ** 20,
    redisMb: (await redis.residentBytes()) / 2 ** 20,
    replicas: fleet.replicas.map(({ slot, program: { pid } }) => ({
      name: slot.name,
      residentMb: residentBytes([pid]) / 2 ** 20,
      handles: openHandles([pid]),
    })),
    seen,
    failedAtSeconds: failedAtMs.map((ms) => (ms - startMs) / 1000),
  };
}

/** One event after the other, each at its time or when the one before it is over. */
async function disturbUntil(
  over: AbortSignal,
  run: Run,
  startMs: number,
  fleet: Fleet,
  redis: ReplicatedRedis,
): Promise<void> {
  const everySeconds = Math.max(LEAST_SECONDS, run.seconds / EVENT_COUNT);
  const secondsIn = () => (Date.now() - startMs) / 1000;
  for (let turn = 0; ; turn++) {
    const dueSeconds = (turn + 1) * everySeconds;
    // What is begun must be over before the last request is sent.
    if (dueSeconds + everySeconds / 2 > run.seconds) return;
    if (!(await waits((dueSeconds - secondsIn()) * 1000, over))) return;
    const kind = EVENTS[turn % EVENTS.length] ?? 'reload';
    const event: Event = { kind, seconds: secondsIn(), tookSeconds: 0 };
    run.events.push(event);
    await disturb(kind, LIMITS[Math.floor(turn / EVENTS.length) % 2 === 0 ? 1 : 0], fleet, redis);
    event.tookSeconds = secondsIn() - event.seconds;
    process.stdout.write(`  ${kind}: ${event.tookSeconds.toFixed(1)} s\n`);
  }
}

async function disturb(kind: EventKind, limits: Limits, fleet: Fleet, redis: ReplicatedRedis): Promise<void> {
  if (kind === 'reload') await fleet.changeLimits(limits);
  else if (kind === 'deploy') await fleet.deploy();
  else if (kind === 'failover') await redis.failOver();
  else if (kind === 'loss') await redis.loseEverything();
  else await fleet.kill();
}

/** @returns false where it was over before */
async function waits(ms: number, signal: AbortSignal): Promise<boolean> {
  return setTimeout(Math.max(0, ms), true, { signal }).catch(() => false);
}

function progress({ seconds, load, replicas, seen, failedAtSeconds }: Sample): string {
  const { requests, refused, degraded, dropped, statuses, p99Ms, fullest } = seen;
  const memory = replicas
    .map(({ residentMb, handles }) => `${residentMb.toFixed(0)} MB/${handles}`)
    .join(' ');
  return [
    `${seconds.toFixed(0).padStart(5)} s`,
    `${requests} requests, ${refused} refused, ${degraded} degraded, ${failedAtSeconds.length} failed ${JSON.stringify(statuses)}, ${dropped} dropped`,
    `p99 ${p99Ms.toFixed(1)} ms`,
    `fullest ${fullest.account.toFixed(2)} ${fullest.organization.toFixed(2)}`,
    `load ${load.toFixed(1)}`,
    memory,
  ].join(' | ');
}

/** `npm run bench:soak`: hours of requests while limits change, replicas are replaced and killed, and Redis fails over. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { Command } from 'commander';
import { findProgram, hardware } from '../lab/machine.ts';
import { openHandles, residentBytes } from '../lab/process-table.ts';
import { startUpstream } from '../load/upstream.ts';
import { Fleet } from './fleet.ts';
import { type ReplicatedRedis, startReplicatedRedis } from './redis.ts';
import { SUMMARY_FILE, saveRun, writeReport } from './report.ts';
import { type Requests, startRequests } from './requests.ts';
import { type Event, type EventKind, type Run, type Sample, unexplainedFailures } from './run.ts';
import type { Limits } from './windows.ts';

/** The limits in force in turn. The quiet Accounts' 3.75 requests a second and Organizations' 37.5 stay below both. */
const LIMITS: readonly [Limits, Limits] = [
  { account: 20, organization: 60 },
  { account: 25, organization: 75 },
];
const EVENTS = ['reload', 'deploy', 'failover', 'kill'] as const;
const RATE = 500;

interface Options {
  readonly seconds: number;
  readonly every: number;
  readonly report?: string;
}

new Command('bench:soak')
  .description('Soaks three replicas behind one entry, and writes its section of bench/RESULTS.md.')
  .option('--seconds <n>', 'length', Number, 7200)
  .option(
    '--every <n>',
    'seconds from one event to the next: limits change, a deploy, Redis fails over, a replica is killed',
    Number,
    300,
  )
  .option('--report <file>', 'writes the section and the plot of an earlier run, from its soak.json')
  .action(async ({ seconds, every, report }: Options) => {
    if (report !== undefined) writeReport(JSON.parse(readFileSync(report, 'utf8')));
    else if (!(await soak(seconds, every))) process.exitCode = 1;
  })
  .parseAsync()
  .catch((error: unknown) => {
    process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`);
    process.exit(1);
  });

async function soak(seconds: number, everySeconds: number): Promise<boolean> {
  const k6 = findProgram('k6', 'K6');
  if (k6 === undefined) throw new Error('No k6 on PATH or in K6: go install go.k6.io/k6/v2@v2.1.0');
  const folder = mkdtempSync(join(tmpdir(), 'weir-soak-'));
  const upstream = await startUpstream(folder, undefined);
  const redis = await startReplicatedRedis();
  const fleet = await Fleet.start(folder, upstream.port, redis.store, LIMITS[0]);
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
    SUMMARY: SUMMARY_FILE,
  };
  const startMs = Date.now();
  const secondsIn = () => (Date.now() - startMs) / 1000;
  const requests = startRequests(k6, env);
  const over = new AbortController();
  const take = () => sampleNow(startMs, fleet, redis, requests);
  const sampling = sampleUntil(over.signal, run, take);
  const disturbing = disturbUntil(over.signal, run, secondsIn, everySeconds, fleet, redis);
  const code = await requests.ended;
  over.abort();
  await Promise.all([sampling, disturbing]);
  run.samples.push(await take());
  run.ended = { thresholdsKept: code === 0 };
  saveRun(run);
  writeReport(run);
  await fleet.stop();
  await redis.stop();
  await upstream.stop();
  rmSync(folder, { recursive: true });
  const isStrict = run.samples.every(
    ({ seen }) => Math.max(seen.fullest.account, seen.fullest.organization) <= 1,
  );
  return code === 0 && isStrict && unexplainedFailures(run).length === 0;
}

async function sampleUntil(over: AbortSignal, run: Run, take: () => Promise<Sample>): Promise<void> {
  const intervalMs = (Math.min(60, run.seconds / 24) || 1) * 1000;
  while (await waits(intervalMs, over)) {
    const sample = await take();
    run.samples.push(sample);
    saveRun(run);
    process.stdout.write(`${progress(sample)}\n`);
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
  secondsIn: () => number,
  everySeconds: number,
  fleet: Fleet,
  redis: ReplicatedRedis,
): Promise<void> {
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

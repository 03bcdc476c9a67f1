/** `npm run bench:soak`: hours of requests while Redis restarts, limits change and replicas are replaced. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { Command } from 'commander';
import { freePort } from '../../test/fixtures/free-port.ts';
import { findProgram, hardware } from '../lab/machine.ts';
import { openHandles, residentBytes } from '../lab/process-table.ts';
import { type Service, startRedis, startUpstream } from '../load/upstream.ts';
import { Fleet } from './fleet.ts';
import { SUMMARY_FILE, saveRun, writeReport } from './report.ts';
import { type Requests, startRequests } from './requests.ts';
import type { Event, Run, Sample } from './run.ts';
import type { Limits } from './windows.ts';

/** The limits in force in turn. The quiet Accounts' 3.75 requests a second and Organizations' 37.5 stay below both. */
const LIMITS: readonly [Limits, Limits] = [
  { account: 20, organization: 60 },
  { account: 25, organization: 75 },
];
const EVENTS = ['redis', 'reload', 'rollout'] as const;
/** Redis keeps nothing: while it is away for longer than a window, no window has charges of both sides. */
const REDIS_AWAY_MS = 3_000;
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
    'seconds from one event to the next: Redis restarts, limits change, replicas roll',
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
  const redis = { service: await startRedis(undefined, await freePort()) };
  const fleet = await Fleet.start(folder, upstream.port, redis.service.port, LIMITS[0]);
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
  const startMs = performance.now();
  const secondsIn = () => (performance.now() - startMs) / 1000;
  const requests = startRequests(k6, env);
  const over = new AbortController();
  const sampling = sampleUntil(over.signal, run, secondsIn, fleet, redis, requests);
  const disturbing = disturbUntil(over.signal, run, secondsIn, everySeconds, fleet, redis);
  const code = await requests.ended;
  over.abort();
  await Promise.all([sampling, disturbing]);
  run.samples.push(sampleNow(secondsIn(), fleet, redis, requests));
  run.ended = { thresholdsKept: code === 0 };
  saveRun(run);
  writeReport(run);
  await fleet.stop();
  await redis.service.stop();
  await upstream.stop();
  rmSync(folder, { recursive: true });
  const isStrict = run.samples.every(
    ({ seen }) => Math.max(seen.fullest.account, seen.fullest.organization) <= 1,
  );
  return code === 0 && isStrict;
}

type Redis = { service: Service };

async function sampleUntil(
  over: AbortSignal,
  run: Run,
  secondsIn: () => number,
  fleet: Fleet,
  redis: Redis,
  requests: Requests,
): Promise<void> {
  const intervalMs = (Math.min(60, run.seconds / 24) || 1) * 1000;
  while (await waits(intervalMs, over)) {
    const sample = sampleNow(secondsIn(), fleet, redis, requests);
    run.samples.push(sample);
    saveRun(run);
    process.stdout.write(`${progress(sample)}\n`);
  }
}

function sampleNow(seconds: number, fleet: Fleet, redis: Redis, requests: Requests): Sample {
  return {
    seconds,
    load: loadavg()[0] ?? 0,
    redisMb: residentBytes([redis.service.pid]) / 2 ** 20,
    replicas: fleet.replicas.map(({ slot, program: { pid } }) => ({
      name: slot.name,
      residentMb: residentBytes([pid]) / 2 ** 20,
      handles: openHandles([pid]),
    })),
    seen: requests.take(),
  };
}

/** One event after the other, each at its time or when the one before it is over. */
async function disturbUntil(
  over: AbortSignal,
  run: Run,
  secondsIn: () => number,
  everySeconds: number,
  fleet: Fleet,
  redis: Redis,
): Promise<void> {
  for (let turn = 0; ; turn++) {
    const dueSeconds = (turn + 1) * everySeconds;
    // What is begun must be over before the last request is sent.
    if (dueSeconds + everySeconds / 2 > run.seconds) return;
    if (!(await waits((dueSeconds - secondsIn()) * 1000, over))) return;
    const kind = EVENTS[turn % EVENTS.length] ?? 'redis';
    const event: Event = { kind, seconds: secondsIn(), tookSeconds: 0 };
    run.events.push(event);
    await disturb(kind, LIMITS[Math.floor(turn / EVENTS.length) % 2 === 0 ? 1 : 0], fleet, redis);
    event.tookSeconds = secondsIn() - event.seconds;
    process.stdout.write(`  ${kind}: ${event.tookSeconds.toFixed(1)} s\n`);
  }
}

async function disturb(kind: Event['kind'], limits: Limits, fleet: Fleet, redis: Redis): Promise<void> {
  if (kind === 'rollout') await fleet.roll();
  else if (kind === 'reload') await fleet.changeLimits(limits);
  else await restart(redis);
}

async function restart(redis: Redis): Promise<void> {
  const { port } = redis.service;
  await redis.service.stop();
  await setTimeout(REDIS_AWAY_MS);
  redis.service = await startRedis(undefined, port);
}

/** @returns false where it was over before */
async function waits(ms: number, signal: AbortSignal): Promise<boolean> {
  return setTimeout(Math.max(0, ms), true, { signal }).catch(() => false);
}

function progress({ seconds, load, replicas, seen }: Sample): string {
  const { requests, refused, degraded, failed, dropped, statuses, p99Ms, fullest } = seen;
  const memory = replicas
    .map(({ residentMb, handles }) => `${residentMb.toFixed(0)} MB/${handles}`)
    .join(' ');
  return [
    `${seconds.toFixed(0).padStart(5)} s`,
    `${requests} requests, ${refused} refused, ${degraded} degraded, ${failed} failed ${JSON.stringify(statuses)}, ${dropped} dropped`,
    `p99 ${p99Ms.toFixed(1)} ms`,
    `fullest ${fullest.account.toFixed(2)} ${fullest.organization.toFixed(2)}`,
    `load ${load.toFixed(1)}`,
    memory,
  ].join(' | ');
}

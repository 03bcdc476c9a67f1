import { mkdtempSync, rmSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { CONTESTANTS, PLAIN_PROXY } from './contestants/all.ts';
import { chooseCores, findProgram, hardware, versionOf } from './lab/machine.ts';
import { startRedis, startUpstream } from './load/upstream.ts';
import type { Bench } from './measure/bench.ts';
import { type ArrivalRates, measureLatency } from './measure/latency.ts';
import { median } from './measure/lineup.ts';
import { measureMemory } from './measure/memory.ts';
import { measureMessages } from './measure/messages.ts';
import { measureScaling } from './measure/scaling.ts';
import { measureRefused, measureThroughput, type ThroughputRounds } from './measure/throughput.ts';
import { measureWindow } from './measure/window.ts';
import { type BenchmarkOptions, type Measurement, planOf } from './plan.ts';
import { summaryOf } from './report/summary.ts';
import { writeReport } from './report/write.ts';
import { entryOf, type Results } from './results.ts';

/** What nothing can be measured without, and where Debian keeps it. */
const NEEDED = { wrk: 'wrk', nginx: 'nginx', 'redis-server': 'redis-server' } as const;

/** The rate if the plain proxy was not measured, which each contestant can take. */
const DEFAULT_RATE = 5_000;

export async function runBenchmark(options: BenchmarkOptions): Promise<void> {
  const say = (line: string): void => void process.stdout.write(`${line}\n`);
  requirePrograms();
  const folder = mkdtempSync(join(tmpdir(), 'weir-bench-'));
  const cores = chooseCores();
  const upstream = await startUpstream(folder, cores?.load);
  const redis = await startRedis(cores?.load);
  try {
    const bench: Bench = { folder, cores, upstream, redis, plan: planOf(options), say };
    const results: Results = { ...circumstances(bench), ...(await measureAll(bench)) };
    say(summaryOf(results));
    if (bench.plan.isWritten) say(`written: ${writeReport(results).join(', ')}`);
  } finally {
    await redis.stop();
    await upstream.stop();
    rmSync(folder, { recursive: true });
  }
}

function requirePrograms(): void {
  const missing = Object.keys(NEEDED).filter((name) => findProgram(name) === undefined);
  if (process.platform !== 'linux')
    throw new Error('The benchmark reads CPU time from /proc: it needs Linux.');
  if (missing.length === 0) return;
  throw new Error(`Not on PATH: ${missing.join(', ')}. Debian: apt-get install ${missing.join(' ')}`);
}

async function measureAll(bench: Bench): Promise<Partial<Results>> {
  const { plan } = bench;
  const when = async <T>(name: Measurement, measure: () => Promise<T>): Promise<Record<string, T>> => {
    if (!plan.measures(name)) return {};
    bench.say(`\n${name}`);
    return { [name]: await measure() };
  };
  const throughput = await when('throughput', () => measureThroughput(bench));
  const rates = ratesFor(throughput.throughput ?? {});
  return {
    ...throughput,
    ...(await when('refused', () => measureRefused(bench))),
    ...(await when('messages', () => measureMessages(bench))),
    ...(await when('latency', () => measureLatency(bench, rates))),
    ...(await when('window', () => measureWindow(bench))),
    ...(await when('memory', () => measureMemory(bench))),
    ...(await when('scaling', () => measureScaling(bench))),
  };
}

/** Half of the plain proxy's capacity for all, or half of its own for a contestant with less than the plain proxy. */
function ratesFor(throughput: ThroughputRounds): ArrivalRates {
  const halves = Object.entries(throughput).map(([name, rounds]): [string, number] => [
    name,
    Math.round(median(rounds.map((round) => round.requestsPerSecond)) / 200) * 100,
  ]);
  const rate = new Map(halves).get(PLAIN_PROXY.name) ?? DEFAULT_RATE;
  return { rate, ownRates: Object.fromEntries(halves.filter(([, half]) => half < rate)) };
}

function circumstances({ cores, plan }: Bench): Omit<Results, Measurement> {
  const tool = (name: string, args: string[], pattern: RegExp) =>
    `${name} ${versionOf(findProgram(name) ?? name, args, pattern)}`;
  return {
    date: new Date().toISOString(),
    command: ['npm run bench --', ...process.argv.slice(2)].join(' '),
    hardware: hardware(),
    cores:
      cores === undefined
        ? 'not divided'
        : `gateway (and a limiter service) on core ${cores.gateway}; upstream, Redis and load on ${cores.load}`,
    loadBefore: loadavg()[0] ?? 0,
    versions: [
      `Node ${process.version}`,
      tool('nginx', ['-v'], /nginx\/(\S+)/),
      tool('redis-server', ['-v'], /v=(\S+)/),
      tool('wrk', ['-v'], /wrk (\S+)/),
    ],
    contestants: CONTESTANTS.filter(({ name }) => plan.includes(name)).map(entryOf),
  };
}

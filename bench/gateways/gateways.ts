import { loadavg } from 'node:os';
import { PLAIN_PROXY } from '../contestants/all.ts';
import type { Bench } from '../lab/bench.ts';
import { findProgram, hardware, IS_IMAGE_NODE, NODE, versionOf } from '../lab/machine.ts';
import { median } from '../lab/turns.ts';
import { writeResult } from '../report/section.ts';
import { chosenOf, measurementsOf } from './lineup.ts';
import {
  measureLatency,
  measureMemory,
  measureRefused,
  measureThroughput,
  measureWindow,
} from './measurements.ts';
import { measureMessages } from './messages.ts';
import { plotsOf } from './plots.ts';
import type { Results } from './results.ts';
import { measureScaling } from './scaling.ts';
import { tablesOf } from './tables.ts';

/** Nothing can be measured without them. Debian's packages have the same names. */
const NEEDED = ['wrk', 'nginx', 'redis-server'];

/** The rate if the plain proxy was not measured, which each contestant can take. */
const DEFAULT_RATE = 5_000;

/** Measures Weir beside what people would pick instead, on one machine in one run. */
export async function compareGateways(bench: Bench): Promise<readonly string[]> {
  if (process.platform !== 'linux')
    throw new Error('The benchmark reads CPU time from /proc: it needs Linux.');
  const missing = NEEDED.filter((name) => findProgram(name) === undefined).join(' ');
  if (missing !== '') throw new Error(`Not on PATH: ${missing}. Debian: apt-get install ${missing}`);
  const results: Results = { ...circumstances(bench), ...(await measureAll(bench)) };
  const plots = IS_IMAGE_NODE ? plotsOf(results) : {};
  if (bench.isRecorded) {
    writeResult(IS_IMAGE_NODE ? 'gateway.json' : `gateway-node${NODE}.json`, results);
    for (const [file, plot] of Object.entries(plots)) writeResult(file, plot);
  }
  return tablesOf(results, Object.keys(plots));
}

async function measureAll(bench: Bench): Promise<Partial<Results>> {
  const wanted = measurementsOf(bench);
  const results: { -readonly [Name in keyof Results]?: Results[Name] } = {};
  if (wanted.includes('throughput')) results.throughput = await measureThroughput(bench);
  if (wanted.includes('refused')) results.refused = await measureRefused(bench);
  if (wanted.includes('messages')) results.messages = await measureMessages(bench);
  if (wanted.includes('latency')) {
    const { rate, ownRates } = ratesFor(results.throughput ?? {});
    results.latency = await measureLatency(bench, rate, ownRates);
  }
  if (wanted.includes('window')) results.window = await measureWindow(bench);
  if (wanted.includes('memory')) results.memory = await measureMemory(bench);
  if (wanted.includes('scaling')) results.scaling = await measureScaling(bench);
  return results;
}

/** Half of the plain proxy's capacity for all, or half of its own for a contestant with less than the plain proxy. */
function ratesFor(throughput: NonNullable<Results['throughput']>) {
  const halves = Object.entries(throughput).map(([name, rounds]): [string, number] => [
    name,
    Math.round(median(rounds.map((round) => round.requestsPerSecond)) / 200) * 100,
  ]);
  const rate = new Map(halves).get(PLAIN_PROXY.name) ?? DEFAULT_RATE;
  return { rate, ownRates: Object.fromEntries(halves.filter(([, half]) => half < rate)) };
}

function circumstances(bench: Bench): Results {
  const { cores } = bench;
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
    contestants: chosenOf(bench).map(({ name, limiter, find }) => ({ name, limiter, ...find() })),
  };
}

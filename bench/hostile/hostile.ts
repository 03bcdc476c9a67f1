import { existsSync, readFileSync } from 'node:fs';
import { findNginx } from '../contestants/nginx.ts';
import type { Bench } from '../lab/bench.ts';
import { provenance } from '../lab/machine.ts';
import { median } from '../lab/turns.ts';
import { resultFile, table, thousands, writeResult } from '../report/section.ts';
import { INPUTS, PLAIN } from './inputs.ts';
import { type Figures, figuresOf, timesPlainPerKib } from './measure.ts';
import { startStage } from './stage.ts';

const WARM_UP_US = 2_000_000;
/** The figures of 0.3.0, in bench/results. */
const BEFORE = 'hostile-0.3.0.json';

/** Measures each input beside a plain GET of the same gateway, and beside the same bytes at nginx. */
export async function measureHostileInputs(bench: Bench): Promise<readonly string[]> {
  const budgetUs = bench.isRecorded ? 500_000 : 100_000;
  const found = findNginx();
  const versions = 'version' in found ? found.version : found.missing;
  const stage = bench.endWith(await startStage(bench.cores, 'version' in found));
  const results: Figures[] = [];
  await figuresOf(stage, PLAIN, WARM_UP_US);
  for (const input of INPUTS.filter(({ name }) => bench.includes(name))) {
    const figures = await figuresOf(stage, input, budgetUs);
    results.push(figures);
    bench.say(cellsOf(figures).join(' | '));
  }
  const circumstances = `${provenance('npm run bench:hostile')}, ${versions}`;
  if (bench.isRecorded) writeResult('hostile.json', { circumstances, results });
  return [
    `${versions}. CPU of the gateway for each request, with the access log, in memory, while it spends ${budgetUs / 1_000} ms on it. The plain GET that it is`,
    `compared with is measured just before each row (median ${median(results.map(({ plainUs }) => plainUs)).toFixed(0)} µs). A KiB is of the hostile bytes, with 40 for the headers`,
    'of each write. The last column is what the guard bounds. [Raw figures](results/hostile.json),',
    `[the figures of 0.3.0](results/${BEFORE}).`,
    '',
    ...table(COLUMNS, results.map(cellsOf)),
  ];
}

const COLUMNS = [
  'input',
  ...[
    'status:',
    'KiB:',
    '0.3.0, µs:',
    'µs:',
    'µs a KiB:',
    'times a plain GET:',
    'times nginx:',
    'plain GETs a KiB:',
  ],
];

function cellsOf(figures: Figures): (string | number)[] {
  const { name, status, kib, us, plainUs, nginxUs } = figures;
  const cells = [name, status, kib.toFixed(1), before(name), thousands(us), (us / kib).toFixed(0)];
  const ratios = [us / plainUs, nginxUs === undefined ? undefined : us / nginxUs, timesPlainPerKib(figures)];
  return [...cells, ...ratios.map((ratio) => ratio?.toFixed(1) ?? '')];
}

function before(name: string): string {
  const file = resultFile(BEFORE);
  if (!existsSync(file)) return '';
  const { results }: { results: Figures[] } = JSON.parse(readFileSync(file, 'utf8'));
  const us = results.find((one) => one.name === name)?.us;
  return us === undefined ? '' : thousands(us);
}

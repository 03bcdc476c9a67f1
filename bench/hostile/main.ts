/**
 * `npm run bench:hostile`: CPU time of each hostile input, beside a plain GET of the same gateway and the same bytes at nginx.
 * `--quick` takes less time and writes nothing; other words choose inputs by their names.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { loadavg } from 'node:os';
import { findNginx } from '../contestants/nginx.ts';
import { chooseCores, provenance } from '../lab/machine.ts';
import { median } from '../measure/lineup.ts';
import { publishSection } from '../report/section.ts';
import { INPUTS, PLAIN } from './inputs.ts';
import { type Figures, figuresOf, timesPlainPerKib } from './measure.ts';
import { startStage } from './stage.ts';

const words = process.argv.slice(2).filter((word) => word !== '--quick');
const isQuick = words.length > 0 || process.argv.includes('--quick');
const BUDGET_US = isQuick ? 100_000 : 500_000;
const WARM_UP_US = 2_000_000;
const RAW = new URL('../results/hostile.json', import.meta.url);
/** The same of 0.3.0. */
const BEFORE = new URL('../results/hostile-0.3.0.json', import.meta.url);

const chosen = INPUTS.filter(({ name }) => words.length === 0 || words.some((word) => name.includes(word)));
const found = findNginx();
const versions = 'version' in found ? found.version : found.missing;
const circumstances = `${provenance('npm run bench:hostile')}, ${versions}, machine load ${loadavg()[0]?.toFixed(1)}`;
const stage = await startStage(chooseCores(), 'version' in found);
const results: Figures[] = [];
try {
  await figuresOf(stage, PLAIN, WARM_UP_US);
  for (const input of chosen) {
    const figures = await figuresOf(stage, input, BUDGET_US);
    results.push(figures);
    process.stdout.write(`${rowOf(figures)}\n`);
  }
} finally {
  await stage.stop();
}

if (!isQuick) writeFileSync(RAW, `${JSON.stringify({ circumstances, results }, null, 2)}\n`);
publishSection(
  'hostile',
  [
    '## Hostile input',
    '',
    `${circumstances}.`,
    `CPU of the gateway for each request, with the access log, in memory, while it spends ${BUDGET_US / 1_000} ms on it. The plain GET that it is`,
    `compared with is measured just before each row (median ${median(results.map(({ plainUs }) => plainUs)).toFixed(0)} µs). A KiB is of the hostile bytes, with 40 for the headers`,
    'of each write. The last column is what the guard bounds. [Raw figures](results/hostile.json),',
    '[the figures of 0.3.0](results/hostile-0.3.0.json).',
    '',
    '| input | status | KiB | 0.3.0, µs | µs | µs a KiB | times a plain GET | times nginx | plain GETs a KiB |',
    '|---|--:|--:|--:|--:|--:|--:|--:|--:|',
    ...results.map(rowOf),
  ],
  isQuick,
);

function rowOf(figures: Figures): string {
  const { name, status, kib, us, plainUs, nginxUs } = figures;
  const cells = [name, status, kib.toFixed(1), us0(before(name)), us0(us), (us / kib).toFixed(0)];
  const ratios = [us / plainUs, nginxUs === undefined ? undefined : us / nginxUs, timesPlainPerKib(figures)];
  return `| ${[...cells, ...ratios.map((ratio) => ratio?.toFixed(1) ?? '')].join(' | ')} |`;
}

function before(name: string): number | undefined {
  if (!existsSync(BEFORE)) return undefined;
  const { results }: { results: Figures[] } = JSON.parse(readFileSync(BEFORE, 'utf8'));
  return results.find((one) => one.name === name)?.us;
}

function us0(us: number | undefined): string {
  return us === undefined ? '' : Math.round(us).toLocaleString('en');
}

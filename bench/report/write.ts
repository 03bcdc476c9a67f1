import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Latency } from '../measure/latency.ts';
import type { Results } from '../results.ts';
import { messageTable } from './messages.ts';
import { plotsOf } from './plots.ts';
import { scalingTable } from './scaling.ts';
import { summaryOf } from './summary.ts';

const BENCH = fileURLToPath(new URL('..', import.meta.url));
const PAGE = join(BENCH, 'RESULTS.md');
const FOLDER = join(BENCH, 'results');
const BEGIN = '<!-- gateway:begin -->';
const END = '<!-- gateway:end -->';

/** Writes the raw figures, the plots and this benchmark's section of RESULTS.md. @returns what it wrote */
export function writeReport(results: Results): string[] {
  mkdirSync(FOLDER, { recursive: true });
  const files = { ...plotsOf(results), 'gateway.json': `${JSON.stringify(results, null, 1)}\n` };
  for (const [name, content] of Object.entries(files)) writeFileSync(join(FOLDER, name), content);
  const plots = Object.keys(files).filter((name) => name.endsWith('.svg'));
  writeFileSync(
    PAGE,
    withSection(existsSync(PAGE) ? readFileSync(PAGE, 'utf8') : '# Results\n', section(results, plots)),
  );
  return ['bench/RESULTS.md', ...Object.keys(files).map((name) => `bench/results/${name}`)];
}

/** Between its markers: other benchmarks and people write the rest of the page. */
function withSection(page: string, text: string): string {
  const from = page.indexOf(BEGIN);
  const to = page.indexOf(END);
  const framed = `${BEGIN}\n${text}\n${END}`;
  if (from === -1 || to === -1) return `${page.trimEnd()}\n\n${framed}\n`;
  return page.slice(0, from) + framed + page.slice(to + END.length);
}

function section(results: Results, plots: readonly string[]): string {
  const { command, cores, date, hardware, latency, versions } = results;
  const contestants = results.contestants.flatMap(({ name, version }) =>
    version === undefined ? [] : [`${name}: ${version}`],
  );
  return [
    '## Gateways and limiters',
    '',
    `${date.slice(0, 16).replace('T', ' ')} UTC, \`${command}\`, ${hardware}.`,
    `Cores: ${cores}. ${versions.join(', ')}.`,
    ...(results.loadBefore > 1
      ? [
          `The machine had other work at the same time (load average ${results.loadBefore.toFixed(1)} before the run): compare`,
          'figures of one table, not of two runs; latencies are those of a busy machine.',
        ]
      : []),
    '',
    ...plots.map((file) => `![${file.replace('.svg', '')}](results/${file})`),
    '',
    summaryOf(results),
    latency === undefined ? '' : ratesOf(latency),
    '',
    ...(results.messages === undefined ? [] : [messageTable(results.messages)]),
    ...(results.scaling === undefined ? [] : [scalingTable(results.scaling)]),
    `Versions: ${contestants.join('; ')}.`,
  ].join('\n');
}

function ratesOf({ rate, ownRates }: Latency): string {
  const slower = Object.entries(ownRates).map(([name, own]) => `${name} at ${own}`);
  const others = slower.length === 0 ? '' : `, and half of their own for slower ones: ${slower.join(', ')}`;
  return `Latency is at ${rate} requests/s, half of the plain proxy's capacity${others}.`;
}

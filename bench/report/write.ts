import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Latency } from '../measure/latency.ts';
import type { Results } from '../results.ts';
import { messageTable } from './messages.ts';
import { plotsOf } from './plots.ts';
import { scalingTable } from './scaling.ts';
import { writeSection } from './section.ts';
import { summaryOf } from './summary.ts';

const FOLDER = fileURLToPath(new URL('../results', import.meta.url));

/** The image's Node: the section without a version in its title, and the plots, are of this one. */
const IMAGE_NODE = '24';

/** Writes the raw figures, the plots and this benchmark's section of RESULTS.md. @returns what it wrote */
export function writeReport(results: Results): string[] {
  mkdirSync(FOLDER, { recursive: true });
  const [node = ''] = process.versions.node.split('.');
  const isImageNode = node === IMAGE_NODE;
  const name = isImageNode ? 'gateway' : `gateway-node${node}`;
  const plots = isImageNode ? plotsOf(results) : {};
  const files = { ...plots, [`${name}.json`]: `${JSON.stringify(results, null, 1)}\n` };
  for (const [file, content] of Object.entries(files)) writeFileSync(join(FOLDER, file), content);
  const title = `## Gateways and limiters${isImageNode ? '' : `, Node ${node}`}`;
  writeSection(name, section(title, results, Object.keys(plots)));
  return ['bench/RESULTS.md', ...Object.keys(files).map((file) => `bench/results/${file}`)];
}

function section(title: string, results: Results, plots: readonly string[]): string {
  const { command, cores, date, hardware, latency, versions } = results;
  const contestants = results.contestants.flatMap(({ name, version }) =>
    version === undefined ? [] : [`${name}: ${version}`],
  );
  return [
    title,
    '',
    `${date.slice(0, 16).replace('T', ' ')} UTC, \`${command}\`, ${hardware}.`,
    `Cores: ${cores}. ${versions.join(', ')}.`,
    ...(results.loadBefore > 1
      ? [
          `The load average was ${results.loadBefore.toFixed(1)} before the run, from other work or from the benchmark before it: compare figures of one table,`,
          'not of two runs.',
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

import { PLAIN_PROXY } from '../contestants/all.ts';
import type { Results } from '../results.ts';
import { type Row, rowsOf } from './figures.ts';

const NOTHING = '–';

/** The table of all contestants, as GitHub's Markdown. */
export function summaryOf(results: Results): string {
  const rows = rowsOf(results);
  const plain = rows.find(({ name }) => name === PLAIN_PROXY.name);
  const lines = rows.map((row) => `| ${cellsOf(row, plain?.requestsPerSecond).join(' | ')} |`);
  const columns = Object.keys(COLUMNS);
  const head = [`| ${columns.join(' | ')} |`, `|---|---|${'--:|'.repeat(columns.length - 2)}`];
  const missing = results.contestants
    .filter((entry) => entry.missing !== undefined)
    .map(({ name, missing: reason }) => `- ${name} took no part: ${reason}`);
  return [...head, ...lines, '', ...missing].join('\n');
}

/** What each column shows of a row; `plain` is the plain proxy's requests per second. */
const COLUMNS: Readonly<Record<string, (row: Row, plain: number | undefined) => string>> = {
  contestant: ({ name }) => (name.startsWith('Weir') ? `**${name}**` : name),
  limits: ({ limiter }) => limiter,
  'requests/s': ({ requestsPerSecond }) => whole(requestsPerSecond),
  '× plain': ({ requestsPerSecond }, plain) => ratio(requestsPerSecond, plain),
  'refused/s': ({ refusedPerSecond }) => whole(refusedPerSecond),
  '× plain ': ({ refusedPerSecond }, plain) => ratio(refusedPerSecond, plain),
  'CPU µs/request: gateway': ({ gatewayCpuUs }) => fixed(gatewayCpuUs, 1),
  '+ Redis': ({ redisCpuUs }) => fixed(redisCpuUs, 1),
  'added p50 ms': ({ addedMs }) => fixed(addedMs?.p50, 2),
  'p99 ms': ({ addedMs }) => fixed(addedMs?.p99, 2),
  'p99.9 ms': ({ addedMs }) => fixed(addedMs?.p999, 2),
  'worst second / limit': ({ worstWindow }) => fixed(worstWindow, 2),
  'MB at rest': ({ atRestMb }) => whole(atRestMb),
  'MB at 10,000 connections': ({ connectedMb }) => whole(connectedMb),
};

function cellsOf(row: Row, plain: number | undefined): string[] {
  return Object.values(COLUMNS).map((cell) => cell(row, plain));
}

function whole(value: number | undefined): string {
  return value === undefined ? NOTHING : Math.round(value).toLocaleString('en');
}

function fixed(value: number | undefined, digits: number): string {
  return value === undefined ? NOTHING : value.toFixed(digits);
}

function ratio(value: number | undefined, base: number | undefined): string {
  return value === undefined || base === undefined ? NOTHING : `${(value / base).toFixed(2)}`;
}

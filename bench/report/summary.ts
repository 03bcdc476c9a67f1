import { PLAIN_PROXY } from '../contestants/all.ts';
import type { Results } from '../results.ts';
import { type Row, rowsOf } from './figures.ts';

const NOTHING = '–';

/** The tables of all contestants, as GitHub's Markdown. */
export function summaryOf(results: Results): string {
  const rows = rowsOf(results);
  const plain = rows.find(({ name }) => name === PLAIN_PROXY.name)?.perCore;
  const missing = results.contestants
    .filter((entry) => entry.missing !== undefined)
    .map(({ name, missing: reason }) => `- ${name} took no part: ${reason}`);
  return [...tableOf(SPEED, rows, plain), '', ...tableOf(BEHAVIOUR, rows, plain), '', ...missing].join('\n');
}

/** What each column shows of a row; `plain` is what the plain proxy forwards on one core. */
type Columns = Readonly<Record<string, (row: Row, plain: number | undefined) => string>>;

const CONTESTANT: Columns = { contestant: ({ name }) => (name.startsWith('Weir') ? `**${name}**` : name) };

const SPEED: Columns = {
  ...CONTESTANT,
  'requests/s and core': ({ perCore }) => whole(perCore),
  '× plain': ({ perCore }, plain) => ratio(perCore, plain),
  'refused/s and core': ({ refusedPerCore }) => whole(refusedPerCore),
  'refused × plain': ({ refusedPerCore }, plain) => ratio(refusedPerCore, plain),
  'requests/s seen': ({ requestsPerSecond }) => whole(requestsPerSecond),
  'refused/s seen': ({ refusedPerSecond }) => whole(refusedPerSecond),
  'CPU µs/request: gateway': ({ gatewayCpuUs }) => fixed(gatewayCpuUs, 1),
  '+ Redis': ({ redisCpuUs }) => fixed(redisCpuUs, 1),
  'added p50 ms': ({ addedMs }) => fixed(addedMs?.p50, 2),
  'p99 ms': ({ addedMs }) => fixed(addedMs?.p99, 2),
  'p99.9 ms': ({ addedMs }) => fixed(addedMs?.p999, 2),
};

const BEHAVIOUR: Columns = {
  ...CONTESTANT,
  limits: ({ limiter }) => limiter,
  'worst second / limit': ({ worstWindow }) => fixed(worstWindow, 2),
  'admitted in two seconds / limit': ({ admittedShare }) => fixed(admittedShare, 2),
  'MB at rest': ({ atRestMb }) => whole(atRestMb),
  'MB at 10,000 connections': ({ connectedMb }) => whole(connectedMb),
};

function tableOf(columns: Columns, rows: readonly Row[], plain: number | undefined): string[] {
  const names = Object.keys(columns);
  const lines = rows.map((row) => Object.values(columns).map((cell) => cell(row, plain)));
  return [
    names,
    names.map((name) => (name === 'contestant' || name === 'limits' ? '---' : '--:')),
    ...lines,
  ].map((cells) => `| ${cells.join(' | ')} |`);
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

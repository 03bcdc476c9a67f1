import { PLAIN_PROXY } from '../contestants/all.ts';
import { median } from '../lab/turns.ts';
import { table, thousands } from '../report/section.ts';
import type { Latency, Results, Scaling, ScalingPoint } from './results.ts';
import { type Row, rowsOf } from './rows.ts';

const NOTHING = '–';

/** The lines of the gateways' section. */
export function tablesOf(results: Results, plots: readonly string[]): string[] {
  const { cores, latency, messages, scaling, versions } = results;
  const rows = rowsOf(results);
  const plain = rows.find(({ name }) => name === PLAIN_PROXY.name)?.perCore;
  const tableOf = (columns: Columns) =>
    table(
      Object.keys(columns),
      rows.map((row) => Object.values(columns).map((cell) => cell(row, plain))),
    );
  const missing = results.contestants.flatMap(({ name, missing: reason }) =>
    reason === undefined ? [] : [`- ${name} took no part: ${reason}`],
  );
  const contestants = results.contestants.flatMap(({ name, version }) =>
    version === undefined ? [] : [`${name}: ${version}`],
  );
  return [
    `Cores: ${cores}. ${versions.join(', ')}.`,
    ...(results.loadBefore > 1
      ? ['The machine had other work before the run: compare figures of one table, not of two runs.']
      : []),
    '',
    ...plots.map((file) => `![${file.replace('.svg', '')}](results/${file})`),
    '',
    ...tableOf(SPEED),
    '',
    ...tableOf(BEHAVIOUR),
    '',
    ...missing,
    ...(latency === undefined ? [] : [ratesOf(latency), '']),
    ...(messages === undefined ? [] : [...messageTable(messages), '']),
    ...(scaling === undefined ? [] : [...scalingTable(scaling), '']),
    `Versions: ${contestants.join('; ')}.`,
  ];
}

/** What each column shows of a row; `plain` is what the plain proxy forwards on one core. */
type Columns = Readonly<Record<string, (row: Row, plain: number | undefined) => string>>;

const CONTESTANT: Columns = { contestant: ({ name }) => (name.startsWith('Weir') ? `**${name}**` : name) };

const SPEED: Columns = {
  ...CONTESTANT,
  'requests/s and core:': ({ perCore }) => whole(perCore),
  '× plain:': ({ perCore }, plain) => ratio(perCore, plain),
  'refused/s and core:': ({ refusedPerCore }) => whole(refusedPerCore),
  'refused × plain:': ({ refusedPerCore }, plain) => ratio(refusedPerCore, plain),
  'requests/s seen:': ({ requestsPerSecond }) => whole(requestsPerSecond),
  'refused/s seen:': ({ refusedPerSecond }) => whole(refusedPerSecond),
  'CPU µs/request: gateway:': ({ gatewayCpuUs }) => fixed(gatewayCpuUs, 1),
  '+ Redis:': ({ redisCpuUs }) => fixed(redisCpuUs, 1),
  'added p50 ms:': ({ addedP50Ms }) => fixed(addedP50Ms, 2),
  'p99 ms:': ({ addedP99Ms }) => fixed(addedP99Ms, 2),
  'p99.9 ms:': ({ addedP999Ms }) => fixed(addedP999Ms, 2),
};

const BEHAVIOUR: Columns = {
  ...CONTESTANT,
  limits: ({ limiter }) => limiter,
  'worst second / limit:': ({ worstWindow }) => fixed(worstWindow, 2),
  'admitted in two seconds / limit:': ({ admittedShare }) => fixed(admittedShare, 2),
  'MB at rest:': ({ atRestMb }) => whole(atRestMb),
  'MB at 10,000 connections:': ({ connectedMb }) => whole(connectedMb),
};

function whole(value: number | undefined): string {
  return value === undefined ? NOTHING : thousands(value);
}

function fixed(value: number | undefined, digits: number): string {
  return value === undefined ? NOTHING : value.toFixed(digits);
}

function ratio(value: number | undefined, base: number | undefined): string {
  return value === undefined || base === undefined ? NOTHING : `${(value / base).toFixed(2)}`;
}

function ratesOf({ rate, ownRates }: Latency): string {
  const slower = Object.entries(ownRates).map(([name, own]) => `${name} at ${own}`);
  const others = slower.length === 0 ? '' : `, and half of their own for slower ones: ${slower.join(', ')}`;
  return `Latency is at ${rate} requests/s, half of the plain proxy's capacity${others}.`;
}

/** CPU of the gateway for each kind of message, and in times of the plain proxy's. */
function messageTable(messages: NonNullable<Results['messages']>): string[] {
  const names = [...new Set(Object.values(messages).flatMap((rounds) => Object.keys(rounds)))];
  const rows = Object.entries(messages).map(([kind, rounds]) => {
    const plainUs = median(rounds[PLAIN_PROXY.name] ?? []);
    const cells = names.map((name) => {
      const us = median(rounds[name] ?? []);
      return Number.isNaN(us) ? NOTHING : `${us} (${(us / plainUs).toFixed(2)})`;
    });
    return [kind, ...cells];
  });
  return table(['CPU µs per request (× plain)', ...names.map((name) => `${name}:`)], rows);
}

function scalingTable({ accounts, cores, processes }: Scaling): string[] {
  const shared = cores === undefined ? 'all cores' : cores === 1 ? 'one core' : `${cores} cores`;
  const row = (name: string, { gatewayCpuUs, redisCpuUs, requestsPerSecond }: ScalingPoint) => [
    name,
    thousands(requestsPerSecond),
    gatewayCpuUs.toFixed(1),
    redisCpuUs.toFixed(1),
  ];
  return [
    `The processes shared ${shared}.`,
    '',
    ...table(
      ['Weir (redis)', 'requests/s:', 'CPU µs/request: gateway:', '+ Redis:'],
      [
        ...processes.map((point) =>
          row(`${point.count} ${point.count === 1 ? 'process' : 'processes'}`, point),
        ),
        ...accounts.map((point) => row(`${thousands(point.count)} Accounts`, point)),
      ],
    ),
  ];
}

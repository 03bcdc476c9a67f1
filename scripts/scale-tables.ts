/** Calculates the tables of docs/scale.md from the inputs at its top. */

type Inputs = (name: string) => number;

const RATES = [10_000, 100_000, 1_000_000];
const ACCOUNTS = [1_000_000, 10_000_000, 100_000_000];
const ZONES = 3;
/** A primary and two replicas of Redis, one in each zone. */
const NODES_PER_SHARD = 3;
const HOURS_PER_MONTH = 730;
const SECONDS_PER_MONTH = HOURS_PER_MONTH * 3_600;

/** The page with its calculated tables, which stand between markers, made anew. */
export function withScaleTables(page: string): string {
  const inputs = inputsOf(page);
  const tables = { capacity: capacity(inputs), sizes: sizes(inputs), memory: memory(inputs) };
  return Object.entries(tables).reduce((text, [name, table]) => replaceBetween(text, name, table), page);
}

/** Rows of the first table: `| name | value | … |`. */
function inputsOf(page: string): Inputs {
  const rows = new Map(
    [...page.matchAll(/^\| `(\w+)` \| ([\d.,]+) \|/gm)].map((row) => [
      row[1],
      Number(row[2]?.replaceAll(',', '')),
    ]),
  );
  return (name) => {
    const value = rows.get(name);
    if (value === undefined) throw new Error(`docs/scale.md has no input ${name}`);
    return value;
  };
}

function capacity(input: Inputs): string {
  const share = input('utilisation');
  const rows: [string, number][] = [
    ['forwarded requests/s and core', 1e6 / input('gatewayUs')],
    ['refused requests/s and core', 1e6 / input('refusedUs')],
    ['decisions/s and shard, one decision a call', 1e6 / input('redisUs')],
    ['the same with four buckets', 1e6 / (input('redisUs') + 2 * input('furtherBucketUs'))],
    ['the same with eight buckets', 1e6 / (input('redisUs') + 6 * input('furtherBucketUs'))],
    ['decisions/s and shard, 64 decisions a call: one Organization', 1e6 / input('redisBatchedUs')],
  ];
  return table(
    ['', 'at 100 % of a core', `planned, at ${share * 100} %`],
    rows.map(([what, most]) => [what, count(most), count(most * share)]),
  );
}

function sizes(input: Inputs): string {
  const share = input('utilisation');
  const columns = RATES.map((rate) => {
    const replicas = roundUp(rate / ((1e6 / input('gatewayUs')) * share), ZONES);
    const shards = roundUp(rate / ((1e6 / input('redisUs')) * share), 1);
    const machines = roundUp(replicas / input('machineCores'), ZONES) + shards * NODES_PER_SHARD;
    const machinesUsd = machines * input('machineHourUsd') * HOURS_PER_MONTH;
    const callsGb = (rate * (input('sentBytes') + input('answeredBytes')) * (1 - 1 / ZONES)) / 1e9;
    const replicationGb = (rate * input('replicatedBytes') * (NODES_PER_SHARD - 1)) / 1e9;
    const usd = (gb: number) => gb * SECONDS_PER_MONTH * input('crossZoneGbUsd');
    const total = machinesUsd + usd(callsGb) + usd(replicationGb);
    return [
      count(replicas),
      `${count(shards)} × ${NODES_PER_SHARD}`,
      count(machines),
      dollars(machinesUsd),
      dollars(usd(callsGb)),
      dollars(usd(replicationGb)),
      dollars(total),
      `$${((total / (rate * SECONDS_PER_MONTH)) * 1e6).toFixed(4)}`,
    ];
  });
  const names = [
    'replicas of the gateway, one core each',
    'Redis shards × nodes',
    'machines',
    'machines, a month',
    'calls to Redis between zones, a month',
    'replication between zones, a month',
    'together, a month',
    'for a million requests',
  ];
  return table(
    ['requests/s', ...RATES.map(count)],
    names.map((name, row) => [name, ...columns.map((column) => column[row] ?? '')]),
  );
}

function memory(input: Inputs): string {
  const rate = RATES.at(-1) ?? 0;
  const gb = (bytes: number) => `${Number((bytes / 1e9).toPrecision(2))} GB`;
  const keys = (accounts: number) => Math.min(accounts, rate * input('keyWindows'));
  const rows: [string, (accounts: number) => number][] = [
    ['Redis, every Account active in one window', (accounts) => accounts * input('bucketBytes')],
    [
      `Redis at ${count(rate)} requests/s of an Account and an Organization, at most`,
      (accounts) => 2 * keys(accounts) * input('bucketBytes'),
    ],
    ['each gateway, with all of them in an identities file', (accounts) => accounts * input('identityBytes')],
  ];
  return table(
    ['Accounts', ...ACCOUNTS.map(count)],
    rows.map(([what, bytes]) => [what, ...ACCOUNTS.map((accounts) => gb(bytes(accounts)))]),
  );
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const align = head.map((_, index) => (index === 0 ? '---' : '--:'));
  return [head, align, ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}

function replaceBetween(page: string, name: string, text: string): string {
  const [begin, end] = [`<!-- ${name}:begin -->`, `<!-- ${name}:end -->`];
  const [from, to] = [page.indexOf(begin), page.indexOf(end)];
  if (from === -1 || to === -1) throw new Error(`docs/scale.md has no markers ${name}`);
  return `${page.slice(0, from + begin.length)}\n${text}\n${page.slice(to)}`;
}

function roundUp(value: number, step: number): number {
  return Math.ceil(value / step) * step;
}

function count(value: number): string {
  return Math.round(value).toLocaleString('en');
}

function dollars(value: number): string {
  return `$${count(value)}`;
}

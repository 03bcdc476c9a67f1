import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { hardware } from '../../bench/lab/machine.ts';
import { writeSection } from '../../bench/report/section.ts';
import { type Api, type Namespace, startApi } from './commands.ts';
import {
  configMap,
  createEnvironment,
  gatewayPods,
  readmeInstall,
  removeEnvironment,
  scaleGateway,
  TOKEN,
} from './environment.ts';
import { type Probe, startProbe } from './probe.ts';

const ROUNDS = Number(process.env.WEIR_TEST_ROUNDS ?? 10);
const MOST_MS = 2_000;

interface Seen {
  readonly ip: string;
  readonly limit: number;
  readonly cost: number;
}

interface Row {
  readonly what: string;
  readonly pods: number;
  readonly lagsMs: readonly number[];
}

let namespace: Namespace;
let api: Api;
let probe: Probe;
let ips: readonly string[];
const rows: Row[] = [];

beforeAll(async () => {
  namespace = await createEnvironment();
  api = await startApi();
  await namespace.apply(overrides(1));
  const values = [
    'limits.windowSeconds=3600',
    'limits.defaults.account-read=1000000000',
    'limits.overrideConfigMaps={big}',
    'operations.list[0].method=GET,operations.list[0].path=/v3/big,operations.list[0].cost=1',
  ];
  await namespace.helm(
    ...readmeInstall(),
    '--wait',
    '--timeout=180s',
    ...values.flatMap((one) => ['--set', one]),
  );
});
afterAll(async () => {
  api?.stop();
  await removeEnvironment(namespace);
  save();
});

/** 574 KB of overrides, one of them for the probe. */
function overrides(limit: number): string {
  const accounts = Array.from({ length: 11_900 }, (_, index) => [
    `acct_${String(index).padStart(8, '0')}_of_many`,
    { 'account-read': 1_000 + index },
  ]);
  const own = limit === 1 ? [] : [['acct_1', { 'account-read': limit }]];
  return configMap('big', 'overrides.yaml', { accounts: Object.fromEntries([...accounts, ...own]) });
}

const limitsOf = (limit: number) =>
  configMap('weir-limits', 'limits.yaml', { windowSeconds: 3600, defaults: { 'account-read': limit } });

const pricesOf = (cost: number) =>
  configMap('weir-operations', 'openapi.yaml', {
    openapi: '3.1.0',
    info: { title: 'things', version: '1' },
    paths: { '/v3/things': { get: { operationId: 'listThings', 'x-weir': { cost }, responses: {} } } },
  });

/** Makes a change; answers how long after the request was sent the last pod showed it. */
async function lagOf(change: () => Promise<unknown>, isNew: (seen: Seen) => boolean): Promise<number> {
  const waiting = new Set(ips);
  const startedMs = performance.now();
  await change();
  while (waiting.size > 0) {
    const { value, done } = await probe.lines.next();
    if (done === true) throw new Error('the probe ended');
    const seen = JSON.parse(value) as Seen;
    if (isNew(seen)) waiting.delete(seen.ip);
  }
  return performance.now() - startedMs;
}

async function measure(
  what: string,
  change: (round: number) => Promise<unknown>,
  isNew: (seen: Seen, round: number) => boolean,
): Promise<void> {
  const lagsMs: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    lagsMs.push(
      await lagOf(
        () => change(round),
        (seen) => isNew(seen, round),
      ),
    );
  }
  rows.push({ what, pods: ips.length, lagsMs });
  expect(Math.max(...lagsMs), `all rounds, in ms: ${lagsMs.map(Math.round)}`).toBeLessThan(MOST_MS);
}

describe.sequential.each([2, 5])('with %i pods, from the change of the ConfigMap to the last pod', (pods) => {
  beforeAll(async () => {
    await scaleGateway(namespace, pods);
    ips = (await gatewayPods(namespace)).map(({ ip }) => ip);
    expect(ips).toHaveLength(pods);
    probe = startProbe(namespace, 'follow', [TOKEN, '/v3/things', ...ips]);
  });
  afterEach(async () => {
    await api.replaceConfigMap(namespace, pricesOf(1));
    await api.replaceConfigMap(namespace, overrides(1));
  });
  afterAll(() => probe.kill());

  it('a limit', async () => {
    const limit = (round: number) => 900_000_000 + pods * 1_000 + round;
    await measure(
      'limit',
      (round) => api.replaceConfigMap(namespace, limitsOf(limit(round))),
      (seen, round) => seen.limit === limit(round),
    );
  });

  it('a price', async () => {
    const cost = (round: number) => 2 + (round % 8);
    await measure(
      'price',
      (round) => api.replaceConfigMap(namespace, pricesOf(cost(round))),
      (seen, round) => seen.cost === cost(round),
    );
  });

  it('an override among 574 KB of them', async () => {
    const limit = (round: number) => 800_000_000 + pods * 1_000 + round;
    await measure(
      'override in a ConfigMap of 574 KB',
      (round) => api.replaceConfigMap(namespace, overrides(limit(round))),
      (seen, round) => seen.limit === limit(round),
    );
  });
});

/** `WEIR_WRITE_RESULTS=1` puts the table into bench/RESULTS.md. */
function save(): void {
  if (rows.length === 0) return;
  const ms = (value: number | undefined) => (value ?? Number.NaN).toFixed(0);
  const lines = rows.map(({ what, pods, lagsMs }) => {
    const sorted = lagsMs.toSorted((a, b) => a - b);
    return `| ${what} | ${pods} | ${sorted.length} | ${ms(sorted[0])} | ${ms(sorted[Math.floor(sorted.length / 2)])} | ${ms(sorted.at(-1))} |`;
  });
  const table = [
    'From the start of the request that changes the ConfigMap until every pod answers by it; in ms.',
    '',
    '| change | pods | rounds | fastest | median | slowest |',
    '|---|--:|--:|--:|--:|--:|',
    ...lines,
  ].join('\n');
  console.log(table);
  if (process.env.WEIR_WRITE_RESULTS !== '1') return;
  const at = new Date().toISOString().slice(0, 16).replace('T', ' ');
  const head = `## A change on Kubernetes\n\n${at} UTC, \`npm run test:cluster\`, one node, ${hardware()}.`;
  writeSection('cluster', `${head}\n${table}`);
}

import { readFileSync } from 'node:fs';
import { Redis } from 'ioredis';
import { US_PER_SECOND } from '../../src/domain/clock.ts';
import { bucketKey } from '../../src/store/keys.ts';
import type { Charge } from '../../src/store/store.ts';
import { MAX_LIMIT } from '../../src/store/store.ts';
import { runCharges } from '../../test/fixtures/run-charges.ts';
import type { Bench } from '../lab/bench.ts';
import { median } from '../lab/turns.ts';
import { table } from '../report/section.ts';
import { costOf, type Send } from './call-cost.ts';
import { measurePeriods } from './period-cost.ts';

interface CostRow {
  readonly state: string;
  readonly buckets: number;
  /** By INFO commandstats, the Lua and its commands included; the least of many short runs. */
  readonly usPerCall: number;
  /** The same of the script of 0.2.0, which could not charge buckets with different windows together. */
  readonly usBefore: number | undefined;
  /**
   * The script's cost over the cost of 0.2.0's with as many buckets, at most two: the median of neighbouring runs, because a machine changes
   * its pace. Undefined where that was not measured.
   */
  readonly ratio: number | undefined;
}

const CALLS = 500;
const DECISIONS_PER_CALL = [1, 4, 16, 64];
/** Many short runs: on a shared machine some of them are not interrupted. */
const RUNS = 60;
const MANY_ACCOUNTS = 1_000_000;
const MONTH_SECONDS = 30 * 86_400;
/** An Account's and its Organization's. */
const MOST_BUCKETS_BEFORE = 2;

interface Scene {
  readonly state: string;
  readonly limit: number;
  readonly windowSeconds: number;
  accountOf(call: number): number;
  /** Pause between groups of calls, so that entries open and expire. */
  readonly pauseMs: number;
  /** Of all keys; by default each number of buckets has keys of its own. */
  readonly prefix?: string;
}

const scenes: readonly Scene[] = [
  {
    state: 'quiet accounts, first charge',
    limit: 500,
    windowSeconds: 1,
    accountOf: (call) => 2e6 + call,
    pauseMs: 0,
  },
  { state: 'busy account', limit: 1_000_000, windowSeconds: 1, accountOf: () => 1, pauseMs: 5 },
  { state: 'saturated account, refused', limit: 100, windowSeconds: 1, accountOf: () => 2, pauseMs: 5 },
  {
    state: '1,000 accounts',
    limit: 1_000_000,
    windowSeconds: 1,
    accountOf: (call) => 100 + (call % 1000),
    pauseMs: 0,
  },
];

const MANY: Scene = {
  state: '1,000,000 accounts',
  limit: 1_000_000,
  windowSeconds: 600,
  accountOf: (call) => (call * 7919) % MANY_ACCOUNTS,
  pauseMs: 0,
  prefix: 'filled',
};

/** What a call of charge.lua costs Redis, and what a bucket takes of its memory. */
export async function measureScript(url: string, bench: Bench): Promise<string[]> {
  const client = new Redis(url);
  const costs: CostRow[] = [];
  const before = await loadBefore(client);
  for (const scene of scenes) costs.push(...(await measureScene(client, before, scene, [1, 2, 3, 4, 5])));
  const sizes = await measureSizes(client);
  const batches = await measureBatches(client);
  const periods = await measurePeriods(client, bench.isQuick);
  if (!bench.isQuick) await fill(client);
  costs.push(...(await measureScene(client, undefined, MANY, [1, 2])));
  client.disconnect();
  const rows = costs.map(({ state, buckets, usPerCall, usBefore, ratio }) => {
    const figures = [usPerCall.toFixed(1), usBefore?.toFixed(1) ?? '', ratio?.toFixed(2) ?? ''];
    return [state, buckets, ...figures];
  });
  return [
    '**charge.lua**, one decision a call, by `INFO commandstats`; the least of 60 runs of 500 calls, in turn with the script of 0.2.0, which',
    'had one window for all buckets. The first two buckets have a window of a second, the others of a minute, an hour and 30 days. Last column: the',
    "median of 60 ratios of neighbouring runs, for more than two buckets to 0.2.0's script with two.",
    '',
    ...table(['state', 'buckets:', 'µs a call:', '0.2.0:', 'beside 0.2.0:'], rows),
    '',
    'µs of a decision of two buckets, by the decisions in its call; the least of 60 runs. The aim for 16 is at most 7.',
    '',
    ...table(['state', ...DECISIONS_PER_CALL.map((decisions) => `${decisions}:`)], batches),
    '',
    ...periods,
    '',
    'Bytes of a bucket by `MEMORY USAGE`, with its key and without what its expiry takes.',
    '',
    ...table(['state', 'bytes'], sizes),
  ];
}

function chargeOf(account: number, buckets: number, scene: Scene): Charge {
  const { limit, windowSeconds, prefix = `cost${buckets}` } = scene;
  const tag = `org_${account % 1000}`;
  const all = [
    { key: bucketKey(prefix, tag, 'account-read', `acct_${account}`), limit, windowSeconds },
    { key: bucketKey(prefix, tag, 'organization-read', tag), limit: limit * 1000, windowSeconds },
    { key: bucketKey(prefix, tag, 'account-minute', `acct_${account}`), limit: MAX_LIMIT, windowSeconds: 60 },
    { key: bucketKey(prefix, tag, 'account-hour', `acct_${account}`), limit: MAX_LIMIT, windowSeconds: 3600 },
    {
      key: bucketKey(prefix, tag, 'organization-month', tag),
      limit: MAX_LIMIT,
      windowSeconds: MONTH_SECONDS,
    },
  ];
  return { buckets: all.slice(0, buckets), cost: 1 };
}

function chargesOf(scene: Scene, run: number, buckets: number): readonly Charge[] {
  return Array.from({ length: CALLS / (scene.pauseMs > 0 ? 4 : 1) }, (_, call) =>
    chargeOf(scene.accountOf(run * CALLS + call), buckets, scene),
  );
}

/** Sends charges with the script of 0.2.0, to keys of its own. */
async function loadBefore(client: Redis): Promise<Send> {
  const text = readFileSync(new URL('../../test/store/earlier/one-window.lua', import.meta.url), 'utf8');
  const digest = String(await client.script('LOAD', text));
  return ({ buckets, cost }) => {
    const windowSeconds = buckets[0]?.windowSeconds ?? 1;
    const keys = buckets.map(({ key }) => `before-${key}`);
    const limits = buckets.map(({ limit }) => limit);
    const common = [0, 1, windowSeconds * US_PER_SECOND, windowSeconds * 1500, cost, buckets.length];
    return client.evalsha(digest, keys.length, ...keys, ...common, ...limits);
  };
}

/** One row for each number of buckets, all in turn in each run. */
async function measureScene(
  client: Redis,
  before: Send | undefined,
  scene: Scene,
  numbers: readonly number[],
): Promise<CostRow[]> {
  console.log(`script: ${scene.state}`);
  const now: Send = (charge) => runCharges(client, [charge]);
  const seen = numbers.map((buckets) => ({ buckets, nowUs: [] as number[], beforeUs: [] as number[] }));
  for (let run = 0; run < RUNS; run++) {
    for (const { buckets, nowUs, beforeUs } of seen) {
      const charges = chargesOf(scene, run, buckets);
      nowUs.push(await costOf(client, now, charges, scene.pauseMs));
      if (before !== undefined && buckets <= MOST_BUCKETS_BEFORE)
        beforeUs.push(await costOf(client, before, charges, scene.pauseMs));
    }
  }
  return seen.map(({ buckets, nowUs, beforeUs }) => {
    const reference = seen.find((one) => one.buckets === Math.min(buckets, MOST_BUCKETS_BEFORE))?.beforeUs;
    const ratios = (reference ?? []).map((us, run) => (nowUs[run] ?? 0) / us);
    return {
      state: scene.state,
      buckets,
      usPerCall: Math.min(...nowUs),
      usBefore: beforeUs.length === 0 ? undefined : Math.min(...beforeUs),
      ratio: ratios.length === 0 ? undefined : median(ratios),
    };
  });
}

/** One row for each scene, with the µs of a decision by the decisions in its call. */
async function measureBatches(client: Redis): Promise<string[][]> {
  const send = (charges: readonly Charge[]) => runCharges(client, charges);
  const rows: string[][] = [];
  for (const scene of scenes) {
    const seen = DECISIONS_PER_CALL.map((decisions) => ({ decisions, us: [] as number[] }));
    for (let run = 0; run < RUNS; run++) {
      for (const [place, { decisions, us }] of seen.entries()) {
        // Each has Accounts of its own, so that a first charge is one.
        const charges = [...chargesOf(scene, run * seen.length + place, 2)];
        const calls: Charge[][] = [];
        while (charges.length >= decisions) calls.push(charges.splice(0, decisions));
        us.push((await costOf(client, send, calls, scene.pauseMs)) / decisions);
      }
    }
    rows.push([scene.state, ...seen.map(({ us }) => Math.min(...us).toFixed(1))]);
  }
  return rows;
}

async function fill(client: Redis): Promise<void> {
  for (let first = 0; first < MANY_ACCOUNTS; first += 64 * 16) {
    const batches = Array.from({ length: 16 }, (_, batch) =>
      Array.from({ length: 64 }, (_call, index) => chargeOf(first + batch * 64 + index, 2, MANY)),
    );
    await Promise.all(batches.map((charges) => runCharges(client, charges)));
  }
}

/** Bytes of a bucket by MEMORY USAGE, with its key and without what its expiry takes. */
async function measureSizes(client: Redis): Promise<[state: string, bytes: number][]> {
  const rows: [string, number][] = [];
  for (const [state, charges] of [
    ['one charge in the window', 1],
    ['ten charges over the window', 10],
    ['charges in every slot of the window', 200],
  ] as const) {
    const key = bucketKey('weir', 'org_12345678', 'account-read', `acct_12345678_${charges}`);
    const startUs = Date.now() * 1000;
    for (let index = 0; index < charges; index++) {
      const charge = { buckets: [{ key, limit: 1_000_000, windowSeconds: 60 }], cost: 1 };
      await runCharges(client, [charge], {
        nowUs: startUs + Math.floor((index * 60_000_000) / Math.max(10, charges)),
      });
    }
    rows.push([state, Number(await client.memory('USAGE', key))]);
  }
  return rows;
}

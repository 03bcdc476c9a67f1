import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { weir } from '../contestants/weir.ts';
import type { Bench } from '../lab/bench.ts';
import { residentBytes } from '../lab/process-table.ts';
import type { Limits } from '../load/two-buckets.ts';
import { resultFile, table } from '../report/section.ts';
import { FullestSeconds } from './fullest-seconds.ts';
import { readSummary, runK6 } from './k6.ts';

const ACCOUNTS = 100;

/** The limits that a script is run against; `organization` is of ten Accounts. */
const SCRIPTS: Readonly<Record<string, Limits>> = {
  steady: { account: 500, organization: 5000 },
  burst: { account: 5, organization: 50 },
  flood: { account: 100, organization: 1000 },
  'hot-org': { account: 100, organization: 400 },
  'mixed-cost': { account: 100, organization: 1000 },
  'redis-down': { account: 500, organization: 5000 },
};

/** How many times as long as at the upstream alone, which is nginx with a fixed answer, half of the requests of `steady` may take. */
const MOST_TIMES_AS_LONG = 20;

/** Runs the scripts that the words name, or all, each against a Weir of its own. */
export async function runScripts(bench: Bench): Promise<readonly string[]> {
  const unknown = bench.words.find((word) => SCRIPTS[word] === undefined);
  if (unknown !== undefined)
    throw new Error(`There is no script ${unknown}: ${Object.keys(SCRIPTS).join(', ')}`);
  const rows: string[][] = [];
  for (const [name, limits] of Object.entries(SCRIPTS)) {
    if (bench.words.length === 0 || bench.words.includes(name))
      rows.push(await runScript(bench, name, limits));
  }
  if (rows.some(([, verdict]) => verdict !== 'kept')) process.exitCode = 1;
  const columns = [
    'worst second / limit, Account:',
    'Organization:',
    'median / upstream alone:',
    'sent:',
    'growth of the gateway, MB:',
  ];
  return ['', ...table(['script', 'promises', ...columns], rows)];
}

async function runScript(bench: Bench, name: string, limits: Limits): Promise<string[]> {
  bench.say(`\n${name}`);
  const { account: limit, organization: organizationLimit } = limits;
  let redis = await bench.startRedis();
  const upstream = await bench.upstream();
  const terms = { limit, organizationLimit, accounts: ACCOUNTS, redisPort: redis.port };
  const gateway = await bench.start(weir('redis'), name, terms);
  const before = residentBytes(gateway.pids);
  const summary = bench.isQuick ? join(bench.folder, `${name}.json`) : resultFile(`k6/${name}.json`);
  const env = {
    TARGET: `http://127.0.0.1:${gateway.port}`,
    UPSTREAM: `http://127.0.0.1:${upstream.port}`,
    LIMIT: `${limit}`,
    ORGANIZATION_LIMIT: `${organizationLimit}`,
    ACCOUNTS: `${ACCOUNTS}`,
    SECONDS: `${bench.seconds}`,
    SUMMARY: summary,
  };
  const seconds = new FullestSeconds();
  const run = runK6(name, env, (sample) => seconds.add(sample));
  if (name === 'redis-down') {
    const thirdMs = (bench.seconds * 1000) / 3;
    await setTimeout(thirdMs);
    await redis.stop();
    await setTimeout(thirdMs);
    redis = await bench.startRedis(redis.port);
  }
  const code = await run;
  const grownMb = (residentBytes(gateway.pids) - before) / 2 ** 20;
  await gateway.stop();
  await redis.stop();
  const { account, organization } = seconds.take();
  const { timesAsLong, sent } = figuresOf(summary);
  const isOnTime = timesAsLong === undefined || timesAsLong <= MOST_TIMES_AS_LONG;
  const verdict = code === 0 && account <= 1 && organization <= 1 && isOnTime ? 'kept' : 'broken';
  const worst = [account.toFixed(2), organization.toFixed(2)];
  return [
    name,
    verdict,
    ...worst,
    timesAsLong?.toFixed(1) ?? '',
    `${Math.round(sent * 100)} %`,
    grownMb.toFixed(0),
  ];
}

/** What k6's summary in a file says of the script's pace: `sent` is the share of the requests that it did not leave out. */
function figuresOf(summary: string): { readonly timesAsLong: number | undefined; readonly sent: number } {
  const { metrics } = readSummary(summary);
  const value = (metric: string, field: string) => metrics[metric]?.values[field];
  const [through, straight] = [value('through_ms', 'med'), value('straight_ms', 'med')];
  const [iterations = 0, dropped = 0] = [value('iterations', 'count'), value('dropped_iterations', 'count')];
  return {
    timesAsLong: through === undefined || straight === undefined ? undefined : through / straight,
    sent: iterations / (iterations + dropped),
  };
}

/** `npm run bench:k6`: a Weir with its upstream and its Redis, and a k6 script against it. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Command } from 'commander';
import { weir } from '../contestants/weir.ts';
import { findProgram } from '../lab/machine.ts';
import { residentBytes } from '../lab/process-table.ts';
import { startRedis, startUpstream } from '../load/upstream.ts';
import { type Limits, worstShares } from './worst-second.ts';

const FOLDER = fileURLToPath(new URL('.', import.meta.url));
const RESULTS = fileURLToPath(new URL('../results/k6', import.meta.url));
const ACCOUNTS = 100;

/** The limits that a script is run against; `organization` is of ten Accounts. */
const SCRIPTS: Readonly<Record<string, Limits>> = {
  baseline: { account: 500, organization: 5000 },
  steady: { account: 500, organization: 5000 },
  burst: { account: 5, organization: 50 },
  flood: { account: 100, organization: 1000 },
  'hot-org': { account: 100, organization: 400 },
  'mixed-cost': { account: 100, organization: 1000 },
  'redis-down': { account: 500, organization: 5000 },
};

const say = (line: string): void => void process.stdout.write(`${line}\n`);

new Command('bench:k6')
  .description('Runs k6 scripts against a Weir of their own: all of them unless some are named.')
  .argument('[scripts...]', Object.keys(SCRIPTS).join(', '))
  .option('--seconds <n>', 'length of each script', Number, 20)
  .action(async (names: string[], { seconds }: { seconds: number }) => {
    const k6 = findProgram('k6', 'K6');
    if (k6 === undefined) throw new Error('No k6 on PATH or in K6: go install go.k6.io/k6/v2@v2.1.0');
    const wanted = names.length > 0 ? names : Object.keys(SCRIPTS);
    mkdirSync(RESULTS, { recursive: true });
    const failed: string[] = [];
    for (const name of wanted) if (!(await runScript(k6, name, seconds))) failed.push(name);
    if (failed.length > 0) throw new Error(`not kept: ${failed.join(', ')}`);
  })
  .parseAsync()
  .catch((error: unknown) => {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    process.exitCode = 1;
  });

async function runScript(k6: string, name: string, seconds: number): Promise<boolean> {
  const limits = SCRIPTS[name];
  if (limits === undefined) throw new Error(`There is no script ${name}: ${Object.keys(SCRIPTS).join(', ')}`);
  say(`\n${name}`);
  const folder = mkdtempSync(join(tmpdir(), 'weir-k6-'));
  const upstream = await startUpstream(folder, undefined);
  let redis = await startRedis(undefined);
  const gateway = await weir('redis').start({
    folder,
    upstreamPort: upstream.port,
    redisPort: redis.port,
    cores: undefined,
    limit: limits.account,
    organizationLimit: limits.organization,
    accounts: ACCOUNTS,
  });
  const before = residentBytes(gateway.pids);
  const samples = join(folder, 'samples.json');
  const env = {
    TARGET: `http://127.0.0.1:${gateway.port}`,
    UPSTREAM: `http://127.0.0.1:${upstream.port}`,
    LIMIT: `${limits.account}`,
    ORGANIZATION_LIMIT: `${limits.organization}`,
    ACCOUNTS: `${ACCOUNTS}`,
    SECONDS: `${seconds}`,
    SUMMARY: join(RESULTS, `${name}.json`),
  };
  const run = runK6(k6, name, samples, env);
  if (name === 'redis-down') {
    await setTimeout((seconds * 1000) / 3);
    await redis.stop();
    await setTimeout((seconds * 1000) / 3);
    redis = await startRedis(undefined, redis.port);
  }
  const code = await run;
  const grownMb = (residentBytes(gateway.pids) - before) / 2 ** 20;
  await gateway.stop();
  await redis.stop();
  await upstream.stop();
  const { account, organization } = await worstShares(samples, limits);
  rmSync(folder, { recursive: true });
  say(`  worst second / limit: Account ${account.toFixed(2)}, Organization ${organization.toFixed(2)}`);
  say(`  the gateway's memory grew by ${grownMb.toFixed(0)} MB`);
  return code === 0 && account <= 1 && organization <= 1;
}

async function runK6(
  k6: string,
  name: string,
  samples: string,
  env: Record<string, string>,
): Promise<number> {
  const variables = Object.entries(env).flatMap(([key, value]) => ['-e', `${key}=${value}`]);
  const args = ['run', '--quiet', '--no-usage-report', '--out', `json=${samples}`, ...variables];
  const child = spawn(k6, [...args, join(FOLDER, `${name}.ts`)], { stdio: 'inherit' });
  const [code] = await once(child, 'exit');
  return code ?? 1;
}

import { execFileSync } from 'node:child_process';
import { statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { monitorEventLoopDelay, performance } from 'node:perf_hooks';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { checkCosts, placesIn } from '../../src/config/checks/costs.ts';
import { differenceOf } from '../../src/config/files/limits/difference.ts';
import type { Caller } from '../../src/domain/caller.ts';
import type { Limits } from '../../src/domain/limits/limits.ts';
import { Buckets } from '../../src/stages/buckets/buckets.ts';
import type { Bench } from '../lab/bench.ts';
import { collectGarbage } from '../lab/heap.ts';
import { table } from '../report/section.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
// As built: from source there is no thread to parse in.
execFileSync('npm', ['run', '--silent', 'build:modules'], { cwd: ROOT, stdio: 'inherit' });
const BUILT = new URL('../../modules/config/files/limits/limits-files.js', import.meta.url).href;
const { LimitsFiles } = (await import(
  BUILT
)) as typeof import('../../src/config/files/limits/limits-files.ts');

const OVERRIDES = 100_000;
const FILES = 6;
const LOOK_UPS = 400_000;

const PRICES = (['read', 'write'] as const).map((kind) => ({
  id: kind,
  kind,
  cost: 10,
  access: 'caller' as const,
}));

const READ = { id: 'read', kind: 'read', cost: 1, access: 'caller', listed: true } as const;

const accountOf = (index: number) => `acct_${index}`;
/** Limits of its own for each Account. */
const ownLimits = (account: number) => `{ account-read: ${5_000 + account}, account-write: 900 }`;
const planned = (plan: string) => () => `{ plan: ${plan}, account-write: 900 }`;

/** Measures six files of at most 1 MiB, as ConfigMaps hold them. Ratios matter more than the numbers. */
export async function measureOverrides({ folder }: Bench): Promise<readonly string[]> {
  const main = join(folder, 'limits.yaml');
  writeFileSync(main, 'plans: { free: { account-read: 50 }, pro: { account-read: 2000 } }\n');
  const paths = Array.from({ length: FILES }, (_, index) => join(folder, `overrides-${index}.yaml`));
  const writeFiles = (entryOf: (account: number) => string) => {
    for (const [index, path] of paths.entries()) writeOverrides(path, index, entryOf);
  };
  writeFiles(ownLimits);
  const none = await new LimitsFiles(main, []).load();
  const beforeMb = heapMb();
  const files = new LimitsFiles(main, paths);
  const first = await reload(files, none);
  const limits = first.after;
  const heldMb = heapMb() - beforeMb;
  const [path = ''] = paths;
  const fileKib = statSync(path).size / 1024;

  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  writeOverrides(path, 0, (account) => ownLimits(account + 1));
  const one = await reload(files, limits);
  writeFiles(planned('free'));
  const toPlans = await reload(files, one.after);
  writeFiles(planned('pro'));
  const plans = await reload(files, toPlans.after);
  await setTimeout(20);
  delay.disable();

  const charged = 'what a request is charged to';
  const rows: readonly (readonly [what: string, figure: number])[] = [
    ['size of one of the six files, KiB', fileKib],
    ['first load, each Account with limits of its own, ms', first.ms],
    ['the same, processor ms', first.cpuMs],
    ['heap that they hold, MB', heldMb],
    ['reload when one of these files has changed, ms', one.ms],
    ['the same, processor ms', one.cpuMs],
    ['reload when 100,000 Accounts change plans, ms', plans.ms],
    ['the same, processor ms', plans.cpuMs],
    ['longest pause of the event loop by these, ms', delay.max / 1e6],
    ['check of all limits against the prices, ms', timed(() => checkCosts(PRICES, limits, placesIn(main)))],
    [`${charged}, 1,000 busy Accounts, without overrides, ns`, nsPerPlan(none, 1_000)],
    ['the same with 100,000 overrides, ns', nsPerPlan(limits, 1_000)],
    [`${charged}, 100,000 Accounts in turn, without overrides, ns`, nsPerPlan(none, OVERRIDES)],
    ['the same with 100,000 overrides, ns', nsPerPlan(limits, OVERRIDES)],
  ];
  return [
    '',
    ...table(
      ['', ''],
      rows.map(([what, figure]) => [what, Math.round(figure)]),
    ),
  ];
}

function writeOverrides(path: string, file: number, entryOf: (account: number) => string): void {
  const lines = ['accounts:'];
  for (let account = file; account < OVERRIDES; account += FILES) {
    lines.push(`  ${accountOf(account)}: ${entryOf(account)}`);
  }
  writeFileSync(path, lines.join('\n'));
}

/** Milliseconds until changed files are loaded and compared, and the processor time of that in all threads. */
async function reload(files: InstanceType<typeof LimitsFiles>, before: Limits) {
  const startMs = performance.now();
  const startCpu = process.cpuUsage();
  const after = await files.load();
  await differenceOf(before, after);
  const { user, system } = process.cpuUsage(startCpu);
  return { after, ms: performance.now() - startMs, cpuMs: (user + system) / 1_000 };
}

function heapMb(): number {
  collectGarbage();
  return process.memoryUsage().heapUsed / 1e6;
}

function timed(run: () => unknown): number {
  const startMs = performance.now();
  run();
  return performance.now() - startMs;
}

/** Nanoseconds to find out what a request is charged to, for this many Accounts in turn. */
function nsPerPlan(limits: Limits, accounts: number): number {
  const buckets = new Buckets('bench', limits);
  const callers = Array.from({ length: accounts }, (_, index): Caller => {
    const account = accountOf((index * 7919) % OVERRIDES);
    const principal = { id: 'p', type: 'ServiceAccount', account, actsFor: new Set<string>() } as const;
    return { principal, account, organization: undefined, hasOrganizationLimit: false, hashTag: account };
  });
  const run = () => {
    for (let count = 0; count < LOOK_UPS; count++) {
      const caller = callers[count % accounts];
      if (caller !== undefined) buckets.bucketsFor(caller, READ);
    }
  };
  run();
  return (timed(run) * 1e6) / LOOK_UPS;
}

import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { LIKE_WEIR } from '../contestants/node-program.ts';
import { MAIN } from '../contestants/weir.ts';
import type { Bench } from '../lab/bench.ts';
import { findProgram } from '../lab/machine.ts';
import { table, thousands } from '../report/section.ts';
import { seededRandom, writeLog } from './generated-log.ts';

interface Scene {
  readonly lines: number;
  readonly accounts: number;
  /** Whether the report, and jq, are measured as well. */
  readonly isCompared: boolean;
}

/** Ten times the lines shows what does not grow with them, ten times the Accounts what does. */
const SCENES: readonly Scene[] = [
  { lines: 1_000_000, accounts: 5_000, isCompared: true },
  { lines: 1_000_000, accounts: 50_000, isCompared: false },
  { lines: 10_000_000, accounts: 5_000, isCompared: false },
];
const QUICK_SCENES: readonly Scene[] = [{ lines: 200_000, accounts: 5_000, isCompared: true }];

const LIMITS = 'defaults: { account-read: 20, account-write: 10 }\n';

interface Measured {
  readonly seconds: number;
  readonly cpuSeconds: number;
  readonly peakMb: number;
}

/** Measures `weir replay` beside `jq`, which counts the requests of the same log by Account, kind and outcome. */
export async function measureReplay(bench: Bench): Promise<readonly string[]> {
  const missing = ['jq', 'time', 'taskset'].filter((name) => findProgram(name) === undefined);
  if (missing.length > 0) throw new Error(`this benchmark needs ${missing.join(', ')} on PATH`);
  const rows: (string | number)[][] = [];
  for (const scene of bench.isQuick ? QUICK_SCENES : SCENES) rows.push(...(await measureScene(bench, scene)));
  const columns = ['lines:', 'Accounts:', 'program', 'seconds:', 'CPU seconds:', 'lines per CPU second:'];
  return [
    'One day of generated requests, 445 bytes a line, each charged to an Account and an Organization. Each program has one core;',
    'on a machine that is busy with other work its seconds are longer than its CPU seconds, and those are longer than on a machine of its own.',
    '',
    ...table([...columns, 'peak memory, MB:'], rows),
  ];
}

async function measureScene({ folder }: Bench, scene: Scene): Promise<(string | number)[][]> {
  const { lines, accounts, isCompared } = scene;
  const limits = join(folder, 'limits.yaml');
  writeFileSync(limits, LIMITS);
  const log = join(folder, 'access.log');
  const made = { organizations: 200, startMs: Date.UTC(2026, 10, 20), spanMs: 86_400_000, limit: 25 };
  await writeLog(log, { ...scene, ...made, random: seededRandom(1) });
  // The first reader would fill the page cache for the others.
  execFileSync('cat', [log], { stdio: 'ignore' });
  const replay = [process.execPath, ...LIKE_WEIR, MAIN, 'replay', log, '--limits', limits];
  const rowOf = (program: string, command: readonly string[]) => {
    const { seconds, cpuSeconds, peakMb } = measure(folder, command);
    const rate = thousands(lines / cpuSeconds);
    const figures = [seconds.toFixed(1), cpuSeconds.toFixed(1), rate, thousands(peakMb)];
    return [thousands(lines), thousands(accounts), program, ...figures];
  };
  const json = rowOf('`weir replay --json`', [...replay, '--json']);
  if (!isCompared) return [json];
  const filter = 'select(.msg == "request") | [.account, .kind, .outcome] | join(" ")';
  const jq = ['sh', '-c', 'jq -r "$0" "$1" | sort | uniq -c', filter, log];
  return [
    json,
    rowOf('`weir replay --report`', [...replay, '--report', join(folder, 'report.html')]),
    rowOf('`jq … \\| sort \\| uniq -c`', jq),
  ];
}

/** Runs a command on one core. */
function measure(folder: string, command: readonly string[]): Measured {
  const file = join(folder, 'time');
  const args = ['-c', '0', 'time', '-o', file, '-f', '%e %U %S %M', ...command];
  execFileSync('taskset', args, { stdio: 'ignore' });
  const [seconds = 0, user = 0, system = 0, peakKb = 0] = readFileSync(file, 'utf8').split(/\s+/).map(Number);
  return { seconds, cpuSeconds: user + system, peakMb: peakKb / 1_024 };
}

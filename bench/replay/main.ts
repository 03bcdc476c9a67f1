/**
 * `npm run bench:replay`: lines per second and memory of `weir replay`, beside `jq` counting the requests of the same log
 * by Account, kind and outcome. Each program has one core. Writes its section of RESULTS.md unless `--quick`.
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { findProgram, hardware } from '../lab/machine.ts';
import { writeSection } from '../report/section.ts';
import { seededRandom } from './generated-log.ts';
import { writeLog } from './write-log.ts';

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

/** The flags of Weir's image. */
const NODE_FLAGS = ['--min-semi-space-size=16', '--no-allocation-site-pretenuring'];

const WEIR = fileURLToPath(new URL('../../dist/main.js', import.meta.url));

const LIMITS = 'defaults: { account-read: 20, account-write: 10 }\n';

interface Measured {
  readonly seconds: number;
  readonly cpuSeconds: number;
  readonly peakMb: number;
}

const isQuick = process.argv.includes('--quick');
const missing = ['jq', 'time', 'taskset'].filter((name) => findProgram(name) === undefined);
if (missing.length > 0) throw new Error(`this benchmark needs ${missing.join(', ')} on PATH`);

const folder = mkdtempSync(join(tmpdir(), 'weir-bench-replay-'));
const rows: string[] = [];
try {
  const limits = join(folder, 'limits.yaml');
  writeFileSync(limits, LIMITS);
  for (const scene of isQuick ? QUICK_SCENES : SCENES) await measureScene(scene, limits);
} finally {
  rmSync(folder, { recursive: true });
}
const text = section(rows);
process.stdout.write(`${text}\n`);
if (!isQuick) writeSection('replay', text);

async function measureScene(scene: Scene, limits: string): Promise<void> {
  const log = join(folder, 'access.log');
  const made = { organizations: 200, startMs: Date.UTC(2026, 10, 20), spanMs: 86_400_000, limit: 25 };
  await writeLog(log, { ...scene, ...made, random: seededRandom(1) });
  // The first reader would fill the page cache for the others.
  execFileSync('cat', [log], { stdio: 'ignore' });
  const replay = [process.execPath, ...NODE_FLAGS, WEIR, 'replay', log, '--limits', limits];
  const rowOf = (program: string, measured: Measured) => rows.push(row(scene, program, measured));
  rowOf('`weir replay --json`', measure([...replay, '--json']));
  if (!scene.isCompared) return;
  rowOf('`weir replay --report`', measure([...replay, '--report', join(folder, 'report.html')]));
  const filter = 'select(.msg == "request") | [.account, .kind, .outcome] | join(" ")';
  rowOf(
    '`jq … \\| sort \\| uniq -c`',
    measure(['sh', '-c', 'jq -r "$0" "$1" | sort | uniq -c', filter, log]),
  );
}

/** Runs a command on one core. */
function measure(command: readonly string[]): Measured {
  const file = join(folder, 'time');
  execFileSync('taskset', ['-c', '0', 'time', '-o', file, '-f', '%e %U %S %M', ...command], {
    stdio: 'ignore',
  });
  const [seconds = Number.NaN, user = Number.NaN, system = Number.NaN, peakKb = Number.NaN] = readFileSync(
    file,
    'utf8',
  )
    .split(/\s+/)
    .map(Number);
  return { seconds, cpuSeconds: user + system, peakMb: peakKb / 1_024 };
}

function row({ lines, accounts }: Scene, program: string, { seconds, cpuSeconds, peakMb }: Measured): string {
  const shown = (value: number) => Math.round(value).toLocaleString('en-US');
  return `| ${shown(lines)} | ${shown(accounts)} | ${program} | ${seconds.toFixed(1)} | ${cpuSeconds.toFixed(1)} | ${shown(lines / cpuSeconds)} | ${shown(peakMb)} |`;
}

function section(lines: readonly string[]): string {
  return [
    '## Replaying a log',
    '',
    `${new Date().toISOString().slice(0, 16).replace('T', ' ')} UTC, \`npm run bench:replay\`, Node ${process.versions.node}, ${hardware()}, machine load ${loadavg()[0]?.toFixed(1)}.`,
    'One day of generated requests, 445 bytes a line, each charged to an Account and an Organization. Each program has one core;',
    'on a machine that is busy with other work its seconds are longer than its CPU seconds, and those are longer than on a machine of its own.',
    '',
    '| lines | Accounts | program | seconds | CPU seconds | lines per CPU second | peak memory, MB |',
    '|--:|--:|---|--:|--:|--:|--:|',
    ...lines,
  ].join('\n');
}

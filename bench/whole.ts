/**
 * `npm run bench:whole`: every benchmark whose figures README, docs and RESULTS.md show, one after the other, so that they are of one
 * machine and one day. Nothing else should run. If one fails, the others still run, and its name is repeated at the end.
 */
import { spawnSync } from 'node:child_process';
import { loadavg } from 'node:os';
import { Command } from 'commander';

interface Step {
  readonly name: string;
  /** The image's version, and the oldest that Weir supports. */
  readonly node: 24 | 20;
  readonly command: string;
  /** The longest that it took on two cores of 2026. */
  readonly minutes: number;
}

const SHARE =
  'WEIR_TEST_OUTAGE_MS=60000 WEIR_WRITE_RESULTS=1 vitest run test/faults/replicas-share-limits.test.ts';

const STEPS: readonly Step[] = [
  { name: 'gateways', node: 24, command: 'npm run bench -- --rounds 6 --seconds 1', minutes: 24 },
  { name: 'aims', node: 24, command: 'tsx bench/aims/main.ts', minutes: 7 },
  { name: 'aims-node20', node: 20, command: 'tsx bench/aims/main.ts', minutes: 7 },
  { name: 'gateways-node20', node: 20, command: 'npm run bench -- --rounds 6 --seconds 1', minutes: 24 },
  { name: 'counter', node: 24, command: 'npm run bench:counter', minutes: 5 },
  { name: 'in-flight', node: 24, command: 'tsx bench/in-flight/main.ts', minutes: 7 },
  { name: 'decide', node: 24, command: 'tsx bench/decide/main.ts', minutes: 3 },
  { name: 'descriptors', node: 24, command: 'tsx bench/descriptors/main.ts', minutes: 1 },
  { name: 'faults', node: 24, command: 'npm run bench:faults', minutes: 2 },
  // Longer outages than those of `faults`, whose section it replaces.
  { name: 'share', node: 24, command: SHARE, minutes: 3 },
  { name: 'k6', node: 24, command: 'npm run bench:k6', minutes: 3 },
  { name: 'replay', node: 24, command: 'npm run bench:replay', minutes: 3 },
  { name: 'console', node: 24, command: 'npm run bench:console', minutes: 6 },
  { name: 'usage', node: 24, command: 'node --expose-gc --import tsx bench/usage/main.ts', minutes: 1 },
  { name: 'scale', node: 24, command: 'tsx bench/scale.ts', minutes: 1 },
  { name: 'operations', node: 24, command: 'tsx bench/operations/main.ts', minutes: 1 },
  { name: 'identity', node: 24, command: 'tsx bench/identity/main.ts', minutes: 1 },
  { name: 'overrides', node: 24, command: 'node --expose-gc --import tsx bench/overrides.ts', minutes: 1 },
  { name: 'platform', node: 24, command: 'tsx bench/platform/platform.ts', minutes: 1 },
  { name: 'hostile', node: 24, command: 'npm run bench:hostile', minutes: 3 },
  { name: 'guard', node: 24, command: 'npm run bench:guard', minutes: 1 },
  { name: 'soak', node: 24, command: 'npm run bench:soak', minutes: 121 },
];

new Command('bench:whole')
  .description(
    'Runs all benchmarks, one after the other; most of them write their section of bench/RESULTS.md.',
  )
  .option('--only <names>', `some of ${STEPS.map(({ name }) => name).join(', ')}; separated by commas`)
  .option('--from <name>', 'leaves out those before this one')
  .option('--list', 'prints what would run', false)
  .action(({ only, from, list }: { only?: string; from?: string; list: boolean }) => {
    const steps = stepsOf(only?.split(','), from);
    const minutes = steps.reduce((total, step) => total + step.minutes, 0);
    say(`${steps.length} benchmarks, about ${minutes} minutes`);
    if (list) for (const step of steps) say(titleOf(step));
    else runAll(steps);
  })
  .parse();

function stepsOf(only: readonly string[] | undefined, from: string | undefined): readonly Step[] {
  const names = STEPS.map(({ name }) => name);
  const unknown = [...(only ?? []), ...(from === undefined ? [] : [from])].find(
    (name) => !names.includes(name),
  );
  if (unknown !== undefined) {
    process.stderr.write(`There is no benchmark ${unknown}: ${names.join(', ')}\n`);
    process.exit(2);
  }
  const first = from === undefined ? 0 : names.indexOf(from);
  return STEPS.slice(first).filter(({ name }) => only?.includes(name) ?? true);
}

function runAll(steps: readonly Step[]): void {
  // Those that npm does not run need it.
  if (spawnSync('npm', ['run', '--silent', 'build'], { stdio: 'inherit' }).status !== 0) process.exit(1);
  const failed: string[] = [];
  for (const step of steps) {
    say(
      `\n== ${titleOf(step)}: begins at ${new Date().toISOString()}, machine load ${loadavg()[0]?.toFixed(1)}`,
    );
    const args = ['--yes', '--package', `node@${step.node}`, '--call', step.command];
    const { status } = spawnSync('npx', args, { stdio: 'inherit' });
    if (status !== 0) failed.push(`${step.name} (exit ${status})`);
  }
  say(failed.length === 0 ? '\nAll of them succeeded.' : `\nFailed: ${failed.join(', ')}`);
  process.exitCode = failed.length === 0 ? 0 : 1;
}

function titleOf({ name, node, command, minutes }: Step): string {
  return `${name}, Node ${node}, about ${minutes} min: ${command}`;
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

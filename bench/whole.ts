import { spawnSync } from 'node:child_process';
import { loadavg } from 'node:os';
import { STUDIES, TEST_STUDIES } from './studies.ts';

/** One run of a study, on one version of Node. */
interface Step {
  readonly name: string;
  readonly node: number;
  readonly command: string;
  readonly minutes: number;
}

const IMAGE_NODE = 24;

const STEPS: readonly Step[] = [
  ...STUDIES.filter(({ name }) => name !== 'soak').flatMap(stepsOf),
  ...TEST_STUDIES.map((study) => ({ ...study, node: IMAGE_NODE })),
  ...STUDIES.filter(({ name }) => name === 'soak').flatMap(stepsOf),
];

function stepsOf({ name, minutes, nodes = [IMAGE_NODE], wholeArgs = '' }: (typeof STUDIES)[number]): Step[] {
  return nodes.map((node) => ({
    name: node === IMAGE_NODE ? name : `${name}-node${node}`,
    node,
    command: `tsx bench/main.ts ${name} ${wholeArgs}`.trim(),
    minutes,
  }));
}

/**
 * Runs every study whose figures README, docs and RESULTS.md show, one after the other, so that they are of one machine and one day.
 * Nothing else should run. If one fails, the others still run, and its name is repeated at the end.
 */
export function runWhole(only: readonly string[], from: string | undefined, isList: boolean): void {
  const names = STEPS.map(({ name }) => name);
  const unknown = [...only, ...(from === undefined ? [] : [from])].find((name) => !names.includes(name));
  if (unknown !== undefined) throw new Error(`There is no study ${unknown}: ${names.join(', ')}`);
  const first = from === undefined ? 0 : names.indexOf(from);
  const steps = STEPS.slice(first).filter(({ name }) => only.length === 0 || only.includes(name));
  const minutes = steps.reduce((total, step) => total + step.minutes, 0);
  say(`${steps.length} runs, about ${minutes} minutes`);
  const failed: string[] = [];
  for (const { name, node, minutes: most, command } of steps) {
    const title = `${name}, Node ${node}, about ${most} min: ${command}`;
    if (isList) say(title);
    else {
      say(`\n== ${title}: begins at ${new Date().toISOString()}, machine load ${loadavg()[0]?.toFixed(1)}`);
      const { status } = spawnSync('npx', ['--yes', '--package', `node@${node}`, '--call', command], {
        stdio: 'inherit',
      });
      if (status !== 0) failed.push(`${name} (exit ${status})`);
    }
  }
  if (failed.length > 0) throw new Error(`\nFailed: ${failed.join(', ')}`);
  if (!isList) say('\nAll of them succeeded.');
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

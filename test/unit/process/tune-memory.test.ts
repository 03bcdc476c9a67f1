import { spawnSync } from 'node:child_process';
import { expect, test } from 'vitest';

/** Sizes of the young generation, in MiB, while a process of its own keeps more and more objects. The last one is after a collection. */
function growthOf(preparation: string): number[] {
  const program = `
    import { getHeapSpaceStatistics } from 'node:v8';
    import { allocateYoung, growAtOnce } from './src/process/tune-memory.ts';
    ${preparation}
    const mib = () => getHeapSpaceStatistics().find((space) => space.space_name === 'new_space').space_size / 2 ** 20;
    const sizes = [];
    const kept = [];
    for (let count = 0; count < 300_000; count++) {
      kept.push({ count, also: [count] });
      if (count % 256 === 0 && mib() !== sizes.at(-1)) sizes.push(mib());
    }
    gc({ type: 'minor' });
    sizes.push(mib());
    console.log(JSON.stringify(sizes));`;
  const args = ['--expose-gc', '--import', 'tsx', '--input-type=module', '--eval', program];
  const { stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' });
  expect(stderr).toBe('');
  return JSON.parse(stdout) as number[];
}

// Between two collections, V8 of Node 24 may add pages to it, which the next collection gives back.
test('the young generation does not stay larger while the process starts', () => {
  const [untuned, tuned] = [growthOf(''), growthOf('allocateYoung();')];
  expect(untuned.at(-1), untuned.join(' ')).toBeGreaterThanOrEqual(2 * Number(untuned[0]));
  expect(tuned.at(-1), tuned.join(' ')).toBe(tuned[0]);
});

const largestStep = (sizes: readonly number[]) =>
  Math.max(...sizes.slice(1).map((size, index) => size / (sizes[index] ?? size)));

test('the young generation reaches its size in one step, not by doubling', () => {
  const [untuned, tuned] = [growthOf(''), growthOf('growAtOnce();')];
  expect(largestStep(untuned), untuned.join(' ')).toBeLessThanOrEqual(2);
  expect(largestStep(tuned), tuned.join(' ')).toBeGreaterThanOrEqual(8);
});

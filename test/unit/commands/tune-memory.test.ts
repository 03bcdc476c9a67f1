import { spawnSync } from 'node:child_process';
import { expect, test } from 'vitest';

/** The JSON that a program prints in a process of its own, to which nothing else is printed. */
function printedBy(program: string): unknown {
  const args = ['--import', 'tsx', '--input-type=module', '--eval', program];
  const { stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' });
  expect(stderr).toBe('');
  return JSON.parse(stdout);
}

/** Sizes of the young generation, in MiB, while a process of its own keeps more and more objects. */
function growthOf(preparation: string): number[] {
  return printedBy(`
    import { getHeapSpaceStatistics } from 'node:v8';
    import { growAtOnce } from './src/commands/process/tune-memory.ts';
    ${preparation}
    const mib = () => getHeapSpaceStatistics().find((space) => space.space_name === 'new_space').space_size / 2 ** 20;
    const sizes = [];
    const kept = [];
    for (let count = 0; count < 300_000; count++) {
      kept.push({ count, also: [count] });
      if (count % 256 === 0 && mib() !== sizes.at(-1)) sizes.push(mib());
    }
    console.log(JSON.stringify(sizes));`) as number[];
}

/** Full collections while a process with a heap of some size allocates a gigabyte of buffers, and drops them. */
function fullCollectionsOf(preparation: string): number {
  return printedBy(`
    import { constants, PerformanceObserver } from 'node:perf_hooks';
    import { setImmediate } from 'node:timers/promises';
    import { countBuffersWithHeap } from './src/commands/process/tune-memory.ts';
    ${preparation}
    let full = 0;
    new PerformanceObserver((list) => {
      for (const { detail } of list.getEntries()) if (detail.kind === constants.NODE_PERFORMANCE_GC_MAJOR) full++;
    }).observe({ entryTypes: ['gc'] });
    const kept = Array.from({ length: 300_000 }, (_, index) => ({ index }));
    for (let count = 0; count < 16_384; count++) {
      Buffer.alloc(65_536);
      if (count % 16 === 0) await setImmediate();
    }
    console.log(JSON.stringify(full + 0 * kept.length));`) as number;
}

const largestStep = (sizes: readonly number[]) =>
  Math.max(...sizes.slice(1).map((size, index) => size / (sizes[index] ?? size)));

test('the young generation reaches its size in one step, not by doubling', () => {
  const [untuned, tuned] = [growthOf(''), growthOf('growAtOnce();')];
  expect(largestStep(untuned), untuned.join(' ')).toBeLessThanOrEqual(2);
  expect(largestStep(tuned), tuned.join(' ')).toBeGreaterThanOrEqual(8);
});

const isKnown = process.versions.v8.startsWith('13.');
test.skipIf(!isKnown)(
  'buffers that are dropped cause fewer full collections (only V8 13, of Node 24, has the flag)',
  () => {
    const [untuned, tuned] = [fullCollectionsOf(''), fullCollectionsOf('countBuffersWithHeap();')];
    expect(tuned).toBeLessThan(untuned / 2);
  },
);

test('V8 complains of no flag', () => {
  expect(
    printedBy(`
    import { allocateYoung, countBuffersWithHeap, growAtOnce } from './src/commands/process/tune-memory.ts';
    for (const tune of [allocateYoung, countBuffersWithHeap, growAtOnce]) tune();
    console.log(1);`),
  ).toBe(1);
});

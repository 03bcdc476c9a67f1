import { setImmediate } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { Exposition } from '../../../../src/observe/metrics/exposition.ts';

/** An exposition that counts its renderings. Each ends when the test ends it. */
function counting() {
  const ends: ((text: string) => void)[] = [];
  const exposition = new Exposition(() => new Promise((resolve) => ends.push(resolve)));
  return { exposition, ends };
}

it('all readers that wait share one rendering', async () => {
  const { exposition, ends } = counting();
  const texts = Array.from({ length: 100 }, () => exposition.text());
  await setImmediate();
  expect(ends).toHaveLength(1);
  ends[0]?.('first');
  expect(new Set(await Promise.all(texts))).toEqual(new Set(['first']));
});

it('a reader gets a rendering that began after it asked, and one at a time is made', async () => {
  const { exposition, ends } = counting();
  const first = exposition.text();
  await setImmediate();
  const second = exposition.text();
  await setImmediate();
  expect(ends).toHaveLength(1);
  ends[0]?.('first');
  expect(await first).toBe('first');
  await expect.poll(() => ends.length, { interval: 1 }).toBe(2);
  ends[1]?.('second');
  expect(await second).toBe('second');
});

it('a rendering that fails fails its readers, and the next one is made', async () => {
  let count = 0;
  const exposition = new Exposition(async () => {
    count++;
    if (count === 1) throw new Error('no metrics');
    return 'text';
  });
  await expect(exposition.text()).rejects.toThrow('no metrics');
  expect(await exposition.text()).toBe('text');
});

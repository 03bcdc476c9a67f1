import fc from 'fast-check';
import { Counter, Histogram, Registry } from 'prom-client';
import { expect, test } from 'vitest';
import { PlainHistogram } from '../../../src/admin/metrics/histogram.ts';
import { Tally } from '../../../src/admin/metrics/tally.ts';

const BUCKETS = [0.001, 0.01, 0.1, 1];
const DESCRIBED = { name: 'weir_test', help: 'For a test.' };

test('a plain histogram has the same output as one of prom-client for the same values', async () => {
  const values = fc.array(
    fc.oneof(fc.constantFrom(...BUCKETS, 0), fc.double({ min: 0, max: 5, noNaN: true })),
  );
  await fc.assert(
    fc.asyncProperty(values, async (observed) => {
      const theirs = new Registry();
      const ours = new Registry();
      const expected = new Histogram({ ...DESCRIBED, buckets: [...BUCKETS], registers: [theirs] });
      const histogram = new PlainHistogram(ours, { ...DESCRIBED, buckets: BUCKETS });
      for (const value of observed) {
        expected.observe(value);
        histogram.observe(value);
      }
      expect(await ours.metrics()).toBe(await theirs.metrics());
    }),
  );
});

test('a tally shows what prom-client would show of the same counts, at every scrape', async () => {
  const theirs = new Registry();
  const ours = new Registry();
  const labelNames = ['kind', 'outcome'];
  const expected = new Counter({ ...DESCRIBED, labelNames, registers: [theirs] });
  const tally = new Tally(ours, { ...DESCRIBED, labelNames });
  for (const [kind, outcome, count] of [
    ['read', 'admitted', 1],
    ['read', 'denied', 2],
    ['write', 'admitted', 10],
    ['read', 'admitted', 3],
  ] as const) {
    expected.inc({ kind, outcome }, count);
    tally.add(count, kind, outcome);
    expect(await ours.metrics()).toBe(await theirs.metrics());
  }
});

test('a tally without labels is zero before anything is counted', async () => {
  const registry = new Registry();
  new Tally(registry, { ...DESCRIBED, labelNames: [] });
  expect(await registry.metrics()).toContain('weir_test 0');
});

import fc from 'fast-check';
import { expect, it } from 'vitest';
import { msText, unixUsText } from '../../../../src/observe/log/access-log.ts';

it('milliseconds are written as JSON has them, rounded to microseconds', () => {
  const isExact = (ms: number) => msText(ms) === `${Math.round(ms * 1_000) / 1_000}`;
  const double = (max: number) => fc.double({ noNaN: true, min: 0, max });
  fc.assert(fc.property(fc.oneof(double(1e12), double(1_000), double(1)), isExact));
  for (const ms of [0, 0.0004, 0.001, 0.01, 0.5, 0.999, 0.9996, 1, 1.05, 999_999.999, 1_000_000])
    expect([ms, isExact(ms)]).toEqual([ms, true]);
});

it('Unix times are written with every digit', () => {
  const us = fc.integer({ min: 1_795_000_000_000_000, max: 1_795_000_003_000_000 });
  fc.assert(fc.property(us, (one) => unixUsText(one) === `${one}`));
});

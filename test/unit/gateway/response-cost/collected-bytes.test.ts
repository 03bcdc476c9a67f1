import { expect, test } from 'vitest';
import { CollectedBytes, MOST_KEPT } from '../../../../src/gateway/response-cost/collected-bytes.ts';

test('bytes are kept in their order, up to 1 MiB', () => {
  const collected = new CollectedBytes();
  const whole = Buffer.from(Array.from({ length: 300_000 }, (_, index) => index % 251));
  for (let from = 0; from < whole.length; from += 7_001)
    expect(collected.add(whole.subarray(from, from + 7_001))).toBeUndefined();
  expect(collected.bytes.equals(whole)).toBe(true);
  expect(collected.add(Buffer.alloc(MOST_KEPT - 300_002, 'a'))).toBeUndefined();
  expect(collected.add(Buffer.from('bcd'))).toBe('too-long');
  expect(collected.bytes.toString('latin1', MOST_KEPT - 3)).toBe('abc');
  expect(collected.add(Buffer.alloc(1))).toBe('too-long');
  expect(collected.length).toBe(MOST_KEPT);
  collected.release();
  expect(collected.length).toBe(0);
});

test('all bodies together have 64 MiB, and those that end make room', () => {
  const body = Buffer.alloc(MOST_KEPT);
  const all = Array.from({ length: 64 }, () => new CollectedBytes());
  for (const one of all) expect(one.add(body)).toBeUndefined();
  const late = new CollectedBytes();
  expect(late.add(Buffer.alloc(1))).toBe('memory');
  all[0]?.release();
  expect(late.add(body)).toBeUndefined();
  for (const one of [...all, late]) one.release();
  expect(late.add(Buffer.alloc(1))).toBeUndefined();
  late.release();
});

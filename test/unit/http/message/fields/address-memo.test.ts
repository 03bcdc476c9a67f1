import { expect, it } from 'vitest';
import { AddressMemo } from '../../../../../src/http/message/fields/address-memo.ts';

/** A memo, and how often it computed what follows from each address. */
function counting() {
  const computed = new Map<string, number>();
  const memo = new AddressMemo((address) => {
    computed.set(address, (computed.get(address) ?? 0) + 1);
    return address.length;
  });
  return { memo, computed };
}

it('strangers with new addresses do not make it forget one that is used', () => {
  const { memo, computed } = counting();
  for (let stranger = 0; stranger < 10_000; stranger++) {
    if (stranger % 400 === 0) expect(memo.get('192.0.2.1')).toBe(9);
    memo.get(`stranger ${stranger}`);
  }
  expect(computed.get('192.0.2.1')).toBe(1);
});

it('it forgets addresses that are no longer used, and remembers no long text', () => {
  const { memo, computed } = counting();
  const long = 'x'.repeat(65);
  memo.get('192.0.2.1');
  memo.get(long);
  memo.get(long);
  for (let stranger = 0; stranger < 1_001; stranger++) memo.get(`stranger ${stranger}`);
  memo.get('192.0.2.1');
  expect(computed.get('192.0.2.1')).toBe(2);
  expect(computed.get(long)).toBe(2);
});

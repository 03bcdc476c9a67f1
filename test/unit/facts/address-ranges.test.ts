import fc from 'fast-check';
import { expect, it } from 'vitest';
import { networkOf, rangeBase, rangeOf } from '../../../src/domain/network.ts';
import { AddressRanges } from '../../../src/facts/address-ranges.ts';

it.each([
  ['10.1.2.3/8', '10.0.0.0/8'],
  ['10.1.2.3/32', '10.1.2.3'],
  ['0.0.0.0/0', '0.0.0.0/0'],
  ['2001:DB8:0::1/32', '2001:db8::/32'],
  ['2001:db8::1/64', '2001:db8::/64'],
  ['2001:db8::1', '2001:db8::/64'],
  ['::ffff:192.0.2.1', '192.0.2.1'],
  ['10.0.0.300', undefined],
  ['10.0.0.0/33', undefined],
  ['2001:db8::/65', undefined],
  ['10.0.0.0/', undefined],
  ['10.0.0.0/08', undefined],
  ['acct_1/8', undefined],
  ['', undefined],
])('%s is the range %s', (text, range) => {
  expect(rangeOf(text)).toBe(range);
});

it('exactly the ranges that contain an address are found', () => {
  const address = fc.oneof(
    fc.ipV4().map((ip) => ({ ip, longest: 32 })),
    fc.ipV6().map((ip) => ({ ip, longest: 64 })),
  );
  const ranges = fc.array(fc.tuple(address, fc.nat(64)), { maxLength: 20 });
  fc.assert(
    fc.property(ranges, address, fc.boolean(), (given, looked, isWithin) => {
      const all = given.flatMap(
        ([{ ip, longest }, bits]) => rangeOf(`${ip}/${Math.min(bits, longest)}`) ?? [],
      );
      const [first] = all;
      const ip = isWithin && first !== undefined ? (first.split('/')[0] ?? '') : looked.ip;
      const network = networkOf(ip) ?? '';
      const index = new AddressRanges();
      for (const range of all) index.add(range);
      const base = network.split('/')[0] ?? '';
      const expected = all.filter((range) => {
        const [start, bits] = range.split('/');
        return (
          bits !== undefined &&
          !(bits === '64' && range.includes(':')) &&
          rangeBase(base, Number(bits)) === start
        );
      });
      expect([...index.around(network)].sort()).toEqual([...new Set(expected)].sort());
    }),
  );
});

it.each(['', 'unknown', '?'])('%j is no address, and in no range', (text) => {
  const ranges = new AddressRanges();
  for (const range of ['0.0.0.0/0', '2001:db8::/32']) ranges.add(range);
  expect(ranges.around(text)).toEqual([]);
});

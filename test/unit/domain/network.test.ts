import { expect, it } from 'vitest';
import { looksLikeAddress } from '../../../src/domain/network.ts';

it.each([
  '10.0.0.1',
  '10.0.0.300',
  '10.0.0',
  '10.0.0/8',
  '2001:db8::1',
  '2001:db8::/32',
  '[2001:db8::1]',
  '[2001:db8::1]:443',
  'fe80::1%eth0',
])('%s is meant as an address', (text) => {
  expect(looksLikeAddress(text)).toBe(true);
});

it.each(['acct_1', '10', '10.0', '1.2.3.4.5', 'a:b', '[acct_1]', 'face', 'v1.2.3', ''])(
  '%j is meant as another id',
  (text) => {
    expect(looksLikeAddress(text)).toBe(false);
  },
);

import { expect, test } from 'vitest';
import { isPublicAddress, publicLookup, refusalOfUrl } from '../../../src/platform/deliveries/addresses.ts';

test.each([
  '127.0.0.1',
  '127.255.255.254',
  '0.0.0.0',
  '10.1.2.3',
  '172.16.0.1',
  '172.31.255.255',
  '192.168.1.1',
  '169.254.169.254',
  '100.64.0.1',
  '224.0.0.1',
  '255.255.255.255',
  '::',
  '::1',
  '::ffff:127.0.0.1',
  '::ffff:8.8.8.8',
  'fe80::1',
  'fc00::1',
  'fd12:3456::1',
  'ff02::1',
  '64:ff9b::7f00:1',
  '2002:7f00:1::',
  '2001:db8::1',
  'not an address',
])('%s is no address for a delivery', (address) => {
  expect(isPublicAddress(address)).toBe(false);
});

test.each(['8.8.8.8', '172.15.255.255', '172.32.0.1', '100.128.0.1', '2606:4700::1111', '2a00:1450::1'])(
  '%s is a public address',
  (address) => {
    expect(isPublicAddress(address)).toBe(true);
  },
);

test.each([
  'https://2130706433/',
  'https://0x7f.1/',
  'https://017700000001/',
  'https://127.1/',
  'https://[::1]/',
  'https://LOCALHOST./',
  'https://a.localhost/',
])('%s is refused however it is spelt', (url) => {
  expect(refusalOfUrl(url, false)).toBeDefined();
});

test('a public https URL is accepted, and with private addresses allowed so is loopback over http', () => {
  expect(refusalOfUrl('https://example.com:8443/hooks?x=1', false)).toBeUndefined();
  expect(refusalOfUrl('http://127.0.0.1:9/', true)).toBeUndefined();
  expect(refusalOfUrl('file:///etc/passwd', true)).toBeDefined();
});

test('a name that leads to this machine gets no connection', async () => {
  const answer = await new Promise((resolve) => publicLookup('localhost', { all: true }, resolve));
  expect(answer).toMatchObject({ message: 'localhost leads to an address that deliveries may not go to' });
});

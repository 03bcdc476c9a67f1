import { Socket } from 'node:net';
import { expect, it } from 'vitest';
import {
  addForwarded,
  clientNetwork,
  Peer,
  TrustedProxies,
} from '../../../../../src/http/message/fields/forwarded.ts';
import { FieldLines } from '../../../../../src/http/message/head/field-lines.ts';

const request = (remoteAddress: string, forwardedFor?: string) => {
  const socket = Object.defineProperty(new Socket(), 'remoteAddress', { value: remoteAddress });
  const field = (name: string) => (name === 'x-forwarded-for' ? forwardedFor : undefined);
  return { peer: new Peer(socket), head: { field } };
};

const trusted = new TrustedProxies(['10.0.0.0/8', 'fd00::/8']);

it.each([
  ['192.0.2.1', undefined, '192.0.2.1'],
  ['::ffff:192.0.2.1', undefined, '192.0.2.1'],
  ['192.0.2.1', '203.0.113.7', '192.0.2.1'],
  ['10.0.0.1', undefined, '10.0.0.1'],
  ['10.0.0.1', '203.0.113.7', '203.0.113.7'],
  ['10.0.0.1', '198.51.100.1, 203.0.113.7', '203.0.113.7'],
  ['10.0.0.1', '198.51.100.1,203.0.113.7 ,10.0.0.9, fd00::1', '203.0.113.7'],
  ['10.0.0.1', '203.0.113.7, nonsense', '10.0.0.1'],
  ['10.0.0.1', '10.0.0.2, 10.0.0.3', '10.0.0.1'],
  ['fd00::5', '2001:db8:0:1:2::9', '2001:db8:0:1::/64'],
  ['fd00::5', '2001:0DB8::1:ffff:ffff:ffff:ffff', '2001:db8:0:1::/64'],
  ['fd00::5', '1:0:0:4:5:6:7:8', '1:0:0:4::/64'],
  ['fd00::5', '1::5:6:7:8', '1::/64'],
  ['2001:db8::1', undefined, '2001:db8::/64'],
  ['fe80::1%eth0', undefined, 'fe80::/64'],
  ['::1', undefined, '::/64'],
  ['10.0.0.1', '::ffff:203.0.113.7', '203.0.113.7'],
  ['10.0.0.1', '::FFFF:cb00:7107', '203.0.113.7'],
  ['10.0.0.1', '::ffff:cb00:7107', '203.0.113.7'],
  ['10.0.0.1', '[::ffff:cb00:7107]:4711', '203.0.113.7'],
  ['10.0.0.1', '0000:0:0:0:0:FFFF:CB00:7107', '203.0.113.7'],
  ['10.0.0.1', '::ffff:203.0.113.7%eth0', '203.0.113.7'],
  ['::ffff:cb00:7107', undefined, '203.0.113.7'],
  ['::ffff:203.0.113.7%1', undefined, '203.0.113.7'],
  ['::ffff:a00:1', '203.0.113.7, ::ffff:a00:9, FD00:0::1, fd00::1%eth0', '203.0.113.7'],
  ['10.0.0.1', '0:0:0:0:0:ffff:203.0.113.7', '203.0.113.7'],
  ['10.0.0.1', '203.0.113.7:4711', '203.0.113.7'],
  ['10.0.0.1', '203.0.113.7, [fd00::1]:4711', '203.0.113.7'],
  ['10.0.0.1', '[2001:db8::1]', '2001:db8::/64'],
  ['10.0.0.1', ',', '10.0.0.1'],
  ['10.0.0.1', `203.0.113.7${', 10.0.0.2'.repeat(31)}`, '203.0.113.7'],
  // No request passes through 32 trusted proxies.
  ['10.0.0.1', `203.0.113.7${', 10.0.0.2'.repeat(32)}`, '10.0.0.1'],
  ['unknown', undefined, 'unknown'],
])('a request of %s that was forwarded for %s is the client %s', (peer, forwardedFor, client) => {
  expect(clientNetwork(trusted.addressOf(request(peer, forwardedFor)))).toBe(client);
});

it.each([
  ['::ffff:cb00:7107', '203.0.113.7'],
  ['::ffff:203.0.113.7', '203.0.113.7'],
  ['2001:0DB8:0:0::00:1', '2001:db8::1'],
  ['fe80::1%eth0', 'fe80::1'],
  ['0:0:0:0:0:0:0:1', '::1'],
])('%s is written as %s, as a peer and where a proxy names it', (address, canonical) => {
  expect(trusted.addressOf(request(address))).toBe(canonical);
  expect(trusted.addressOf(request('10.0.0.1', address))).toBe(canonical);
  const lines = new FieldLines();
  addForwarded(lines, request(address), false);
  expect(lines.pairs[0]).toEqual(['X-Forwarded-For', canonical]);
});

it.each(['10.1.2.3', '::ffff:10.1.2.3', '::ffff:a01:203', '::FFFF:0a01:0203'])(
  'the peer %s is in the range of 10.0.0.0/8, written for IPv4 or IPv6',
  (address) => {
    const { peer } = request(address);
    for (const range of ['10.0.0.0/8', '::ffff:10.0.0.0/104', '::FFFF:a00:0/104'])
      expect(new TrustedProxies([range]).has(peer)).toBe(true);
    expect(new TrustedProxies(['11.0.0.0/8']).has(peer)).toBe(false);
  },
);

import type { IncomingMessage } from 'node:http';
import { expect, it } from 'vitest';
import { TrustedProxies } from '../../../src/gateway/http/forwarded.ts';

const request = (remoteAddress: string, forwardedFor?: string) =>
  ({ socket: { remoteAddress }, headers: { 'x-forwarded-for': forwardedFor } }) as unknown as IncomingMessage;

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
  ['10.0.0.1', '0:0:0:0:0:ffff:203.0.113.7', '203.0.113.7'],
  ['10.0.0.1', '203.0.113.7:4711', '203.0.113.7'],
  ['10.0.0.1', '203.0.113.7, [fd00::1]:4711', '203.0.113.7'],
  ['10.0.0.1', '[2001:db8::1]', '2001:db8::/64'],
  ['unknown', undefined, 'unknown'],
])('a request of %s that was forwarded for %s is the client %s', (peer, forwardedFor, client) => {
  expect(trusted.clientOf(request(peer, forwardedFor))).toBe(client);
});

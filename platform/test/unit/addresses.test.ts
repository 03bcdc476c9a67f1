import { createSocket, type Socket } from 'node:dgram';
import { lookup as resolveName } from 'node:dns/promises';
import { once } from 'node:events';
import type { LookupFunction } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { createPublicLookup, isPublicAddress, refusalOfUrl } from '../../src/deliveries/addresses.ts';

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
])('%s is not an allowed delivery address', (address) => {
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

describe('a name', () => {
  let server: Socket;
  afterEach(() => server.close());

  /** A name server that gives every name this IPv4 address, or never answers. */
  async function startNameServer(address: string | undefined): Promise<LookupFunction> {
    server = createSocket('udp4', (query, from) => {
      if (address === undefined) return;
      const isTypeA = query.readUInt16BE(query.indexOf(0, 12) + 1) === 1;
      const answer = Buffer.from(query);
      answer.writeUInt16BE(0x8180, 2);
      answer.writeUInt16BE(isTypeA ? 1 : 0, 6);
      const record = [0xc0, 0x0c, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, ...address.split('.').map(Number)];
      server.send(Buffer.concat([answer, Buffer.from(isTypeA ? record : [])]), from.port, from.address);
    });
    server.bind(0, '127.0.0.1');
    await once(server, 'listening');
    return createPublicLookup([`127.0.0.1:${server.address().port}`]);
  }

  const ask = (lookup: LookupFunction) =>
    new Promise((resolve) => {
      lookup('hooks.example.com', { all: true }, (error, addresses) => resolve(error ?? addresses));
    });

  test('that leads to this machine gets no connection', async () => {
    const answer = await ask(await startNameServer('127.0.0.1'));
    expect(answer).toMatchObject({
      message: 'hooks.example.com leads to an address that deliveries may not go to',
    });
  });

  test('that leads to the internet is connected to at the address that was checked', async () => {
    expect(await ask(await startNameServer('8.8.8.8'))).toEqual([{ address: '8.8.8.8', family: 4 }]);
  });

  test('whose server keeps silent delays no other lookup of the process', async () => {
    const lookup = await startNameServer(undefined);
    let failed = 0;
    // They fail when their time is over, for which this test does not wait.
    for (let count = 0; count < 64; count++) void ask(lookup).then(() => failed++);
    await resolveName('localhost');
    expect(failed).toBe(0);
  });
});

import { Resolver } from 'node:dns/promises';
import { BlockList, isIP, type LookupFunction } from 'node:net';

/** Not for deliveries: this machine, private and shared networks, link-local (cloud metadata), multicast, reserved. */
const refusedV4 = [
  ...['0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16', '172.16.0.0/12'],
  ...['192.0.0.0/24', '192.0.2.0/24', '192.88.99.0/24', '192.168.0.0/16', '198.18.0.0/15', '198.51.100.0/24'],
  ...['203.0.113.0/24', '224.0.0.0/4', '240.0.0.0/4'],
];

const refused = new BlockList();
for (const range of refusedV4) {
  const [address = '', prefix] = range.split('/');
  refused.addSubnet(address, Number(prefix), 'ipv4');
}

/** The only global unicast space of IPv6 (RFC 4291), less the ranges that carry an IPv4 address or a tunnel inside. */
const allowedV6 = new BlockList();
allowedV6.addSubnet('2000::', 3, 'ipv6');
const refusedV6 = new BlockList();
for (const [address, prefix] of [
  ['2001::', 23],
  ['2001:db8::', 32],
  ['2002::', 16],
  ['3fff::', 20],
] as const) {
  refusedV6.addSubnet(address, prefix, 'ipv6');
}

/** Whether an IP address is one of the public internet; false for anything that is not an address. */
export function isPublicAddress(address: string): boolean {
  const family = isIP(address);
  if (family === 4) return !refused.check(address, 'ipv4');
  return family === 6 && allowedV6.check(address, 'ipv6') && !refusedV6.check(address, 'ipv6');
}

/**
 * A name lookup for connections that fails when any of the name's addresses is not public. The connection goes to an
 * address that was checked here, so a name that answers differently the next time gains nothing (DNS rebinding).
 *
 * It asks name servers itself (c-ares): `dns.lookup` would hold one of the process's four threads for as long as the
 * server of a subscriber's name keeps silent, and all other lookups behind it. `/etc/hosts` is not read.
 */
export function createPublicLookup(nameServers?: readonly string[]): LookupFunction {
  const resolver = new Resolver({ timeout: 3000, tries: 2 });
  if (nameServers) resolver.setServers(nameServers);
  return (hostname, { all, family }, callback) => {
    resolve(resolver, hostname, family).then(
      (addresses) => {
        const [first] = addresses;
        if (!first || addresses.some(({ address }) => !isPublicAddress(address)))
          return callback(new Error(`${hostname} leads to an address that deliveries may not go to`), '', 0);
        return all ? callback(null, addresses) : callback(null, first.address, first.family);
      },
      (error) => callback(error, '', 0),
    );
  };
}

/** Both families, or the one that is asked for; rejects when there is no address of either. */
async function resolve(resolver: Resolver, hostname: string, family: number | string | undefined) {
  const ofFamily = [
    ...(family === 6 || family === 'IPv6' ? [] : [resolver.resolve4(hostname)]),
    ...(family === 4 || family === 'IPv4' ? [] : [resolver.resolve6(hostname)]),
  ];
  const answers = await Promise.allSettled(ofFamily);
  const addresses = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
  const [failure] = answers.filter((answer) => answer.status === 'rejected');
  if (addresses.length === 0 && failure) throw failure.reason;
  return addresses.map((address) => ({ address, family: isIP(address) }));
}

/** Why deliveries may never go to this address; undefined when nothing speaks against it before its name is resolved. */
export function refusalOfUrl(text: string, allowPrivate: boolean): string | undefined {
  if (!URL.canParse(text)) return 'is not an absolute URL';
  const url = new URL(text);
  if (url.protocol !== 'https:' && url.protocol !== 'http:') return 'must be an https URL';
  if (url.username || url.password) return 'must not carry a user name or password';
  if (allowPrivate) return undefined;
  if (url.protocol !== 'https:') return 'must be an https URL';
  const host = url.hostname.replace(/^\[|\]$/g, '');
  if (isIP(host) && !isPublicAddress(host)) return 'must not be a loopback, private or reserved address';
  if (/(^|\.)localhost\.?$/i.test(host)) return 'must not be a loopback, private or reserved address';
  return undefined;
}

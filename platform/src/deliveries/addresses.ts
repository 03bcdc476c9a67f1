import { Resolver } from 'node:dns/promises';
import { BlockList, isIP, type LookupFunction } from 'node:net';

/** Deliveries never go to these: this machine, private and shared networks, link-local (cloud metadata), multicast, reserved. */
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

/** Global unicast IPv6 (RFC 4291), from which the ranges that embed an IPv4 address or a tunnel are then removed. */
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

/** Whether the text is a public IP address. */
export function isPublicAddress(address: string): boolean {
  const family = isIP(address);
  if (family === 4) return !refused.check(address, 'ipv4');
  return family === 6 && allowedV6.check(address, 'ipv6') && !refusedV6.check(address, 'ipv6');
}

/**
 * A name lookup for connections that fails if any address of the name is not public. The connection uses an address
 * that was checked here, which prevents DNS rebinding.
 *
 * It queries name servers directly (c-ares). `dns.lookup` would block one of the process's four threads while a name
 * server of a subscriber does not answer, and with it all other lookups. `/etc/hosts` is not read.
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

/** The addresses of the given family, or of both. Rejects if the name has no such address. */
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

/** Why deliveries may not go to this URL, or undefined. The addresses of its host name are checked later. */
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

/** Why nobody may subscribe with this URL, or undefined: as `refusalOfUrl`, with rules that earlier subscriptions do not have to meet. */
export function refusalOfNewUrl(text: string, allowPrivate: boolean): string | undefined {
  const refusal = refusalOfUrl(text, allowPrivate);
  if (refusal) return refusal;
  // `new URL` takes a path for a host (`https:/hooks`), and drops tabs and line ends.
  if (!/^https?:\/\/[^/?#\\\s]+(?:[/?#]\S*)?$/i.test(text)) return 'must have a host, and no spaces';
  const { protocol, port } = new URL(text);
  // Other services, such as mail, use lower ports. One of these is the default of http, which is allowed for development.
  const isOpen = port === '' || port === '443' || Number(port) > 1023;
  return isOpen || (protocol === 'http:' && port === '80')
    ? undefined
    : 'must have the port 443 or one above 1023';
}

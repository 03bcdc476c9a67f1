import { isIP } from 'node:net';

/**
 * The network that an address stands for: an IPv4 address itself, or the /64 of an IPv6 address, such as `2001:db8:0:1::/64`,
 * because one client commonly has all addresses of one. An IPv4-mapped IPv6 address is its IPv4 address. Undefined for anything
 * that is not an address or a /64 network.
 */
export function networkOf(address: string): string | undefined {
  if (isIP(address) === 4) return address;
  const [ipv6 = ''] = address.replace(/\/64$/, '').split('%', 1);
  if (isIP(ipv6) !== 6) return undefined;
  const groups = groupsOf(ipv6);
  const [high = 0, low = 0] = groups.slice(6);
  const isMapped = groups[5] === 0xffff && groups.slice(0, 5).every((group) => group === 0);
  if (isMapped) return [high >> 8, high & 0xff, low >> 8, low & 0xff].join('.');
  return `${compressed(groups.slice(0, 4))}/64`;
}

/** The eight groups of a valid IPv6 address. */
function groupsOf(ipv6: string): readonly number[] {
  // A URL's host is the address in its shortest form (RFC 5952), without a dotted IPv4 part.
  const { hostname } = new URL(`http://[${ipv6}]`);
  const [before = [], behind = []] = hostname
    .slice(1, -1)
    .split('::')
    .map((part) => (part === '' ? [] : part.split(':').map((group) => Number.parseInt(group, 16))));
  const zeros = Array.from({ length: 8 - before.length - behind.length }, () => 0);
  return [...before, ...zeros, ...behind];
}

/** The shortest form of a network's address, of which the last four groups are zero. */
function compressed(groups: readonly number[]): string {
  const { hostname } = new URL(`http://[${groups.map((group) => group.toString(16)).join(':')}::]`);
  return hostname.slice(1, -1);
}

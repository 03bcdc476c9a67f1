import { isIP } from 'node:net';

/**
 * The one form of an address: IPv4 in decimals, IPv6 as RFC 5952 writes it, without a zone, and an IPv4-mapped IPv6 address as its IPv4
 * address. Undefined for anything that is not an address.
 */
export function canonicalAddress(text: string): string | undefined {
  if (isIP(text) === 4) return text;
  const [ipv6 = ''] = text.split('%', 1);
  if (isIP(ipv6) !== 6) return undefined;
  return mappedIpv4(groupsOf(ipv6)) ?? hostnameOf(ipv6);
}

/** The canonical address in an item of X-Forwarded-For or of a log, which may have a port: `192.0.2.1:4711`, `[2001:db8::1]:4711`. */
export function addressIn(item: string): string | undefined {
  const [, bracketed, ipv4] = /^(?:\[([^\]]+)\](?::\d+)?|([\d.]+):\d+)$/.exec(item.trim()) ?? [];
  return canonicalAddress(bracketed ?? ipv4 ?? item.trim());
}

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
  return mappedIpv4(groups) ?? `${compressed(groups.slice(0, 4))}/64`;
}

/**
 * The one form of an address or of a range of addresses: `10.0.0.0/8` of `10.1.2.3/8`, and `networkOf` of a single address. Undefined for
 * anything else, and for IPv6 ranges smaller than a /64, because a /64 counts as one client.
 */
export function rangeOf(text: string): string | undefined {
  const [, address = '', bitsText = ''] = /^([^/]+)\/(0|[1-9]\d{0,2})$/.exec(text) ?? [];
  const bits = Number(bitsText);
  const family = isIP(address);
  if (family === 0 || address.includes('%')) return networkOf(text);
  if (bits === 64 && family === 6) return networkOf(address);
  if (bits > (family === 4 ? 32 : 64)) return undefined;
  return bits === 32 && family === 4 ? address : `${rangeBase(address, bits)}/${bits}`;
}

/** Whether a text is meant as an address or a range, though it may be mistyped, such as `10.0.0.300`, `10.0.0` or `[2001:db8::1]`. */
export function looksLikeAddress(id: string): boolean {
  const [, bracketed] = /^\[([^\]]*)\]/.exec(id) ?? [];
  const [address = ''] = (bracketed ?? id).split(/[/%]/, 1);
  return (
    /^\d+(?:\.\d+){2,3}$/.test(address) || (/^[\da-f:.]+$/i.test(address) && address.split(':').length > 2)
  );
}

/** The leading bits of an address or range, as numbers of 32 bits: one for IPv4, two for IPv6, none for anything else. */
export function leadingBits(network: string): readonly number[] {
  const [address = ''] = network.split('/', 1);
  const family = isIP(address);
  if (family === 4) return [numberOf(address.split('.').map(Number), 8)];
  if (family === 0) return [];
  const groups = groupsOf(address);
  return [numberOf(groups.slice(0, 2), 16), numberOf(groups.slice(2, 4), 16)];
}

function numberOf(parts: readonly number[], width: number): number {
  return parts.reduce((sum, part) => sum * 2 ** width + part, 0);
}

/** The first address of the range with these leading bits, in its canonical form: `10.0.0.0` of 10.0.0.1 and 8. */
export function rangeBase(address: string, bits: number): string | undefined {
  if (isIP(address) === 4) return masked(address.split('.').map(Number), 8, bits).join('.');
  if (isIP(address) !== 6) return undefined;
  return canonicalAddress(
    masked(groupsOf(address), 16, bits)
      .map((group) => group.toString(16))
      .join(':'),
  );
}

/** A host as it stands in a URL: an IPv6 address is in brackets. */
export function hostInUrl(host: string): string {
  return host.includes(':') ? `[${host}]` : host;
}

/** The parts of an address, of `width` bits each, with only the leading bits. */
function masked(parts: readonly number[], width: number, bits: number): readonly number[] {
  return parts.map((part, index) => {
    const kept = Math.min(width, Math.max(0, bits - index * width));
    return part & ~((1 << (width - kept)) - 1);
  });
}

/** The IPv4 address of an IPv4-mapped address (RFC 4291 section 2.5.5.2); undefined for others. */
function mappedIpv4(groups: readonly number[]): string | undefined {
  const [high = 0, low = 0] = groups.slice(6);
  const isMapped = groups[5] === 0xffff && groups.slice(0, 5).every((group) => group === 0);
  return isMapped ? [high >> 8, high & 0xff, low >> 8, low & 0xff].join('.') : undefined;
}

/** The eight groups of a valid IPv6 address. */
function groupsOf(ipv6: string): readonly number[] {
  const [before = [], behind = []] = hostnameOf(ipv6)
    .split('::')
    .map((part) => (part === '' ? [] : part.split(':').map((group) => Number.parseInt(group, 16))));
  const zeros = Array.from({ length: 8 - before.length - behind.length }, () => 0);
  return [...before, ...zeros, ...behind];
}

/** The shortest form of a network's address, whose last four groups are zero. */
function compressed(groups: readonly number[]): string {
  return hostnameOf(`${groups.map((group) => group.toString(16)).join(':')}::`);
}

/** A URL's host is the address in its shortest form (RFC 5952), without a dotted IPv4 part. */
function hostnameOf(ipv6: string): string {
  return new URL(`http://[${ipv6}]`).hostname.slice(1, -1);
}

import type { IncomingMessage } from 'node:http';
import { BlockList, isIP, type Socket } from 'node:net';

/** The peers whose word on the client is believed: by address range only, never by their number. */
export class TrustedProxies {
  readonly #ranges = new BlockList();
  readonly #isEmpty: boolean;
  readonly #verdicts = new WeakMap<Socket, boolean>();

  /** @param ranges addresses or CIDR ranges, such as `10.0.0.0/8` or `fd00::/8` */
  constructor(ranges: readonly string[]) {
    this.#isEmpty = ranges.length === 0;
    for (const range of ranges) {
      const [address = '', bits] = range.split('/');
      const family = isIP(address) === 6 ? 'ipv6' : 'ipv4';
      if (bits === undefined) this.#ranges.addAddress(address, family);
      else this.#ranges.addSubnet(address, Number(bits), family);
    }
  }

  /** Asked once per connection. */
  has(socket: Socket): boolean {
    if (this.#isEmpty) return false;
    let verdict = this.#verdicts.get(socket);
    if (verdict === undefined) {
      const address = peerOf(socket);
      const version = isIP(address);
      verdict = version !== 0 && this.#ranges.check(address, version === 6 ? 'ipv6' : 'ipv4');
      this.#verdicts.set(socket, verdict);
    }
    return verdict;
  }
}

/** Adds who the client is: what a trusted proxy says, with the proxy itself behind it, or else the peer alone. */
export function pushForwarded(
  fields: string[],
  { headers, socket }: IncomingMessage,
  isTrusted: boolean,
): void {
  const peer = peerOf(socket);
  const before = isTrusted ? headers['x-forwarded-for'] : undefined;
  fields.push('X-Forwarded-For', before === undefined ? peer : `${before}, ${peer}`);
  fields.push('X-Forwarded-Proto', (isTrusted && single(headers['x-forwarded-proto'])) || 'http');
  const host = (isTrusted && single(headers['x-forwarded-host'])) || headers.host;
  if (host !== undefined) fields.push('X-Forwarded-Host', host);
}

function single(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value[0] : value;
}

/** An IPv4 peer of a dual-stack listener is written as IPv4. */
function peerOf({ remoteAddress = 'unknown' }: Socket): string {
  return remoteAddress.startsWith('::ffff:') ? remoteAddress.slice(7) : remoteAddress;
}

import { BlockList, isIP } from 'node:net';
import type { Fields } from '../../../domain/field-name.ts';
import { addressIn, networkOf } from '../../../domain/network.ts';
import type { FieldLines } from '../head/field-lines.ts';
import { AddressMemo } from './address-memo.ts';
import { isHost } from './inspect.ts';
import type { Peer } from './peer.ts';

/** A request, and the end of the connection that it came from. */
export interface Received {
  readonly head: Fields;
  readonly peer: Peer;
}

/** Scheme and authority of the URL that the client requested. */
export interface ClientOrigin {
  readonly scheme: 'http' | 'https';
  readonly host: string;
}

/** No request passes through more proxies. A longer list is made up: strangers could have thousands of addresses parsed. */
const MAX_PROXIES = 32;

/** The proxies whose forwarded headers are trusted: by address range, never by their number. */
export class TrustedProxies {
  readonly #ranges = new BlockList();
  readonly #isEmpty: boolean;
  readonly #isSocket: boolean;
  readonly #verdicts = new AddressMemo((address) => this.#includes(address));
  readonly #clients = new AddressMemo((forwarded) => this.#clientIn(forwarded));

  /**
   * @param ranges addresses or CIDR ranges, such as `10.0.0.0/8` or `fd00::/8`
   * @param isSocket whether peers connect to a Unix socket: they have no address, and whoever may open the socket is trusted
   */
  constructor(ranges: readonly string[], { isSocket = false } = {}) {
    this.#isEmpty = ranges.length === 0;
    this.#isSocket = isSocket;
    for (const range of ranges) {
      const [address = '', bits] = range.split('/');
      const family = isIP(address) === 6 ? 'ipv6' : 'ipv4';
      if (bits === undefined) this.#ranges.addAddress(address, family);
      else this.#ranges.addSubnet(address, Number(bits), family);
    }
  }

  has({ address }: Peer): boolean {
    return this.#isSocket || (!this.#isEmpty && this.#verdicts.get(address));
  }

  /**
   * The address that a request comes from. Behind trusted proxies it is the last address in X-Forwarded-For that is not theirs:
   * addresses before it are unverified.
   */
  addressOf({ head, peer }: Received): string {
    const forwarded = this.has(peer) ? head.field('x-forwarded-for') : undefined;
    return (forwarded === undefined ? '' : this.#clients.get(forwarded)) || peer.address;
  }

  /** The client that a value of X-Forwarded-For names; empty if it names none. Reads the list from its end, as far as needed. */
  #clientIn(forwarded: string): string {
    let end = forwarded.length;
    for (let proxies = 0; proxies < MAX_PROXIES && end >= 0; proxies++) {
      // `lastIndexOf` takes a negative place for the first one.
      const comma = end === 0 ? -1 : forwarded.lastIndexOf(',', end - 1);
      const address = addressIn(forwarded.slice(comma + 1, end)) ?? '';
      if (!this.#includes(address)) return address;
      end = comma;
    }
    return '';
  }

  /**
   * The origin that the client used: a trusted proxy's X-Forwarded-Proto and X-Forwarded-Host, otherwise the connection's scheme
   * and Host. Undefined where there is no usable host.
   */
  originOf(received: Received): ClientOrigin | undefined {
    const isTrusted = this.has(received.peer);
    const scheme = firstOf(schemeOf(received, isTrusted)).toLowerCase() === 'https' ? 'https' : 'http';
    const host = firstOf(hostOf(received, isTrusted));
    return host !== '' && isHost(host) && URL.canParse(`${scheme}://${host}`) ? { scheme, host } : undefined;
  }

  #includes(address: string): boolean {
    const version = isIP(address);
    return version !== 0 && this.#ranges.check(address, version === 6 ? 'ipv6' : 'ipv4');
  }
}

const networks = new AddressMemo((address) => networkOf(address) ?? address);

/** The network that a client's address is in, which limits by address count. */
export function clientNetwork(address: string): string {
  return networks.get(address);
}

/** Adds the client's address: a trusted proxy's list with the proxy appended, otherwise only the peer. */
export function addForwarded(lines: FieldLines, received: Received, isTrusted: boolean): void {
  const { address } = received.peer;
  const before = isTrusted ? received.head.field('x-forwarded-for') : undefined;
  const path = before === undefined ? address : `${before}, ${address}`;
  lines.addLines(`X-Forwarded-For: ${path}\r\nX-Forwarded-Proto: ${schemeOf(received, isTrusted)}\r\n`);
  const host = hostOf(received, isTrusted);
  if (host !== undefined) lines.addLines(`X-Forwarded-Host: ${host}\r\n`);
}

function schemeOf({ head, peer }: Received, isTrusted: boolean): string {
  return (isTrusted && head.field('x-forwarded-proto')) || (peer.isEncrypted ? 'https' : 'http');
}

function hostOf({ head }: Received, isTrusted: boolean): string | undefined {
  return (isTrusted && head.field('x-forwarded-host')) || head.field('host');
}

/** Of a list, the item that the proxy nearest to the client added. */
function firstOf(list = ''): string {
  return list.split(',', 1)[0]?.trim() ?? '';
}

import type { Socket } from 'node:net';
import { BlockList, isIP } from 'node:net';
import type { PeerCertificate, TLSSocket } from 'node:tls';
import { type Fields, ownCopy } from '../../../domain/field-name.ts';
import { addressIn, canonicalAddress, networkOf } from '../../../domain/network.ts';
import { LastDigest } from '../../../domain/token-digest.ts';
import type { FieldLines } from '../head/field-lines.ts';
import { AddressMemo } from './address-memo.ts';
import { isHost } from './inspect.ts';

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
   * @param isSocket whether peers connect to a Unix socket: they have no address, and every process that may open the socket is trusted
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
      if (!this.#includes(address)) return ownCopy(address);
      end = comma;
    }
    return '';
  }

  /**
   * The origin that the client used: a trusted proxy's X-Forwarded-Proto and X-Forwarded-Host, otherwise the connection's scheme
   * and Host. Undefined where there is no usable host.
   */
  originOf(received: Received): ClientOrigin | undefined {
    const scheme = this.schemeOf(received);
    const host = firstOf(hostOf(received, this.has(received.peer)));
    return host !== '' && isHost(host) && URL.canParse(`${scheme}://${host}`) ? { scheme, host } : undefined;
  }

  /** The scheme of that origin, which is known without a host. */
  schemeOf(received: Received): ClientOrigin['scheme'] {
    return firstOf(schemeOf(received, this.has(received.peer))).toLowerCase() === 'https' ? 'https' : 'http';
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

const addresses = new AddressMemo((address) => canonicalAddress(address) ?? address);

/** The other end of a client's connection. */
export class Peer {
  /** In its canonical form: an IPv4 peer of a dual-stack listener is written as IPv4. */
  readonly address: string;
  readonly isEncrypted: boolean;
  readonly lastDigest = new LastDigest();
  /** What the next request of this connection may use again. Whatever keeps an object here knows its class. */
  memory: object | undefined;
  readonly #certificate: PeerCertificate | undefined;
  #subject: string | undefined;

  constructor(socket: Socket) {
    this.address = addresses.get(socket.remoteAddress ?? 'unknown');
    this.isEncrypted = isEncrypted(socket);
    // Without a verified certificate there is nothing to read.
    if (isEncrypted(socket) && socket.authorized) this.#certificate = socket.getPeerCertificate();
  }

  /**
   * The subject of the client's verified certificate as a distinguished name in ASCII (RFC 4514), such as `CN=billing,O=Example`.
   * Undefined if the client did not have to show a certificate.
   */
  get certificateSubject(): string | undefined {
    if (this.#certificate !== undefined) this.#subject ??= nameOf(this.#certificate.subject);
    return this.#subject;
  }
}

function isEncrypted(socket: Socket): socket is TLSSocket {
  return 'encrypted' in socket;
}

/** The name with its last, most specific attribute first (RFC 4514 section 2.1). */
function nameOf(subject: PeerCertificate['subject'] | undefined): string {
  const attributes = Object.entries(subject ?? {}).flatMap(([type, values]) =>
    [values ?? []].flat().map((value) => `${type}=${escaped(String(value))}`),
  );
  return attributes.reverse().join(',');
}

/** Whatever could end the header field, or be read as another attribute, as bytes in hexadecimal (RFC 4514 section 2.4). */
function escaped(value: string): string {
  return value.replace(/[^A-Za-z0-9 ._:/@*()'-]|^[ #]| $/gu, (character) =>
    [...Buffer.from(character)].map((byte) => `\\${byte.toString(16).padStart(2, '0')}`).join(''),
  );
}

import type { IncomingMessage } from 'node:http';
import { BlockList, isIP, type Socket } from 'node:net';
import { networkOf } from '../../domain/network.ts';
import { isEncrypted } from '../tls/client-subject.ts';
import { NameMemo } from './field-names.ts';
import { isHost } from './host.ts';

/** Scheme and authority of the URL that the client requested. */
export interface ClientOrigin {
  readonly scheme: 'http' | 'https';
  readonly host: string;
}

/** The proxies whose forwarded headers are trusted: by address range, never by their number. */
export class TrustedProxies {
  readonly #ranges = new BlockList();
  readonly #isEmpty: boolean;
  readonly #verdicts = new WeakMap<Socket, boolean>();
  readonly #clients = new NameMemo((forwarded) => this.#clientIn(forwarded));
  readonly #networks = new NameMemo((address) => networkOf(address) ?? address);

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

  /** Called once per connection. */
  has(socket: Socket): boolean {
    if (this.#isEmpty) return false;
    let verdict = this.#verdicts.get(socket);
    if (verdict === undefined) {
      verdict = this.#includes(peerOf(socket));
      this.#verdicts.set(socket, verdict);
    }
    return verdict;
  }

  /** The network that a client's request comes from, as `networkOf` writes it. */
  clientOf(request: IncomingMessage): string {
    return this.#networks.get(this.addressOf(request));
  }

  /**
   * The address that a request comes from. Behind trusted proxies it is the last address in X-Forwarded-For that is not theirs:
   * addresses before it are unverified.
   */
  addressOf({ headers, socket }: IncomingMessage): string {
    const forwarded = this.has(socket) ? headers['x-forwarded-for'] : undefined;
    return (forwarded === undefined ? '' : this.#clients.get(`${forwarded}`)) || peerOf(socket);
  }

  /** The client that a value of X-Forwarded-For names; empty if it names none. */
  #clientIn(forwarded: string): string {
    const addresses = forwarded.split(',').map(withoutPort);
    const client = addresses.findLast((one) => !this.#includes(one));
    return client === undefined || isIP(client) === 0 ? '' : withoutMapping(client);
  }

  /**
   * The origin that the client used: a trusted proxy's X-Forwarded-Proto and X-Forwarded-Host, otherwise the connection's scheme
   * and Host. Undefined where there is no usable host.
   */
  originOf(request: IncomingMessage): ClientOrigin | undefined {
    const { socket } = request;
    const isTrusted = this.has(socket);
    const scheme = schemeOf(request, isTrusted).toLowerCase() === 'https' ? 'https' : 'http';
    const host = firstOf(hostOf(request, isTrusted));
    return host !== '' && isHost(host) && URL.canParse(`${scheme}://${host}`) ? { scheme, host } : undefined;
  }

  #includes(address: string): boolean {
    const version = isIP(address);
    return version !== 0 && this.#ranges.check(address, version === 6 ? 'ipv6' : 'ipv4');
  }
}

/** Adds the client's address: a trusted proxy's list with the proxy appended, otherwise only the peer. */
export function pushForwarded(fields: string[], request: IncomingMessage, isTrusted: boolean): void {
  const { headers, socket } = request;
  const peer = peerOf(socket);
  const before = isTrusted ? headers['x-forwarded-for'] : undefined;
  fields.push('X-Forwarded-For', before === undefined ? peer : `${before}, ${peer}`);
  fields.push(
    'X-Forwarded-Proto',
    (isTrusted && single(headers['x-forwarded-proto'])) || connectionScheme(socket),
  );
  const host = hostOf(request, isTrusted);
  if (host !== undefined) fields.push('X-Forwarded-Host', host);
}

function schemeOf({ headers, socket }: IncomingMessage, isTrusted: boolean): string {
  return firstOf((isTrusted && single(headers['x-forwarded-proto'])) || connectionScheme(socket));
}

function connectionScheme(socket: Socket): 'http' | 'https' {
  return isEncrypted(socket) ? 'https' : 'http';
}

function hostOf({ headers }: IncomingMessage, isTrusted: boolean): string | undefined {
  return (isTrusted && single(headers['x-forwarded-host'])) || headers.host;
}

/** Of a list, the item that the proxy nearest to the client added. */
function firstOf(list = ''): string {
  return list.split(',', 1)[0]?.trim() ?? '';
}

function single(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value[0] : value;
}

/** An IPv4 peer of a dual-stack listener is written as IPv4. */
function peerOf({ remoteAddress = 'unknown' }: Socket): string {
  return withoutMapping(remoteAddress);
}

/** Some proxies add the client's port: `192.0.2.1:4711`, `[2001:db8::1]:4711`. */
function withoutPort(item: string): string {
  const [, bracketed, ipv4] = /^(?:\[([^\]]+)\](?::\d+)?|([\d.]+):\d+)$/.exec(item.trim()) ?? [];
  return bracketed ?? ipv4 ?? item.trim();
}

function withoutMapping(address: string): string {
  return address.startsWith('::ffff:') ? address.slice(7) : address;
}

import type { Socket } from 'node:net';
import type { PeerCertificate, TLSSocket } from 'node:tls';
import { canonicalAddress } from '../../../domain/network.ts';
import { LastDigest } from '../../../domain/token-digest.ts';
import { AddressMemo } from './address-memo.ts';

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

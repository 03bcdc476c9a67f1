import type { Socket } from 'node:net';
import type { PeerCertificate, TLSSocket } from 'node:tls';

const subjects = new WeakMap<Socket, string | undefined>();

export function isEncrypted(socket: Socket): socket is TLSSocket {
  return 'encrypted' in socket;
}

/**
 * The subject of the verified client certificate of a connection as a distinguished name in ASCII (RFC 4514), such as
 * `CN=billing,O=Example`. Undefined if the client did not have to show a certificate.
 */
export function clientSubject(socket: Socket): string | undefined {
  if (!isEncrypted(socket) || !socket.authorized) return undefined;
  if (!subjects.has(socket)) subjects.set(socket, nameOf(socket.getPeerCertificate().subject));
  return subjects.get(socket);
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

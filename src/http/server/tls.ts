/** HTTPS servers whose certificates can be replaced while they run. */
import { constants } from 'node:crypto';
import { createServer as createHttpsServer, type Server, type ServerOptions } from 'node:https';
import {
  createServer as createTlsServer,
  type SecureContextOptions,
  type Server as TlsServer,
} from 'node:tls';
import type { ServerCertificates } from '../../domain/connections/tls-files.ts';

/**
 * Authenticated encryption with forward secrecy: Mozilla's intermediate configuration for TLS 1.2 (guideline 5.7), and all ciphers
 * of TLS 1.3.
 */
const CIPHERS = [
  'TLS_AES_128_GCM_SHA256',
  'TLS_AES_256_GCM_SHA384',
  'TLS_CHACHA20_POLY1305_SHA256',
  'ECDHE-ECDSA-AES128-GCM-SHA256',
  'ECDHE-RSA-AES128-GCM-SHA256',
  'ECDHE-ECDSA-AES256-GCM-SHA384',
  'ECDHE-RSA-AES256-GCM-SHA384',
  'ECDHE-ECDSA-CHACHA20-POLY1305',
  'ECDHE-RSA-CHACHA20-POLY1305',
].join(':');

/** Renegotiation lets a client make the server compute again and again; TLS 1.3 does not have it. */
const NO_RENEGOTIATION = constants.SSL_OP_NO_RENEGOTIATION;

/** The TLS of one port. */
export class PortTls {
  readonly #servers = new Set<TlsServer>();
  #certificates: ServerCertificates;

  constructor(certificates: ServerCertificates) {
    this.#certificates = certificates;
  }

  /** A server like the one of `http.createServer`. A client that does not finish its handshake in time is disconnected. */
  createServer(options: ServerOptions, handshakeTimeoutMs: number): Server {
    const tls = this.#optionsOf(['http/1.1'], handshakeTimeoutMs);
    return this.#followed(createHttpsServer({ ...options, ...tls }));
  }

  /** A server of connections for this protocol, which says `secureConnection` of each after its handshake. */
  createRawServer(protocol: string, handshakeTimeoutMs: number): TlsServer {
    return this.#followed(createTlsServer(this.#optionsOf([protocol], handshakeTimeoutMs)));
  }

  #optionsOf(protocols: string[], handshakeTimeout: number) {
    const asksClients = this.#certificates.clientCa !== undefined;
    return {
      ...contextOf(this.#certificates),
      ALPNProtocols: protocols,
      handshakeTimeout,
      requestCert: asksClients,
      rejectUnauthorized: asksClients,
    };
  }

  /** A server that gets changed certificates. */
  #followed<AnyServer extends TlsServer>(server: AnyServer): AnyServer {
    this.#servers.add(server);
    server.once('close', () => this.#servers.delete(server));
    return server;
  }

  /** Uses these certificates for new connections. Open connections keep theirs. */
  replace(certificates: ServerCertificates): void {
    this.#certificates = certificates;
    for (const server of this.#servers) server.setSecureContext(contextOf(certificates));
  }
}

function contextOf({ cert, key, clientCa }: ServerCertificates): SecureContextOptions {
  return {
    cert,
    key,
    ...(clientCa === undefined ? {} : { ca: clientCa }),
    minVersion: 'TLSv1.2',
    ciphers: CIPHERS,
    honorCipherOrder: false,
    secureOptions: NO_RENEGOTIATION,
  };
}

/** The URL of a server, given as Fastify reports it for every server that it did not create itself. */
export function servedUrl(url: string, tls: PortTls | undefined): string {
  return tls === undefined ? url : url.replace(/^http:/, 'https:');
}

import { connect, isIP, type OnReadOpts, type Socket } from 'node:net';
import { createSecureContext, type SecureContext, connect as tlsConnect } from 'node:tls';
import { sharedLookup } from '../../domain/connections/shared-lookup.ts';
import type { ClientTls } from '../../domain/connections/tls-files.ts';

/** How to speak TLS to an upstream. */
export interface TlsOptions extends ClientTls {
  readonly verify: boolean;
}

/** Where the reads of one connection go. */
export interface ReadTarget {
  /** Called before the first read and after each. */
  nextBuffer(): Buffer;
  /** Returns false to stop reading. */
  onRead(byteCount: number, bytes: Buffer): boolean;
}

/** How long a connection is silent before TCP asks whether its peer is still there. */
const TCP_KEEP_ALIVE_MS = 60_000;

/** Opens connections to one origin. */
export class Connector {
  /** The value of the Host field. */
  readonly host: string;
  /** The event of a socket that can be written to. */
  readonly readyEvent: 'connect' | 'secureConnect';
  readonly #address: string;
  readonly #port: number;
  readonly #secureContext: SecureContext | undefined;
  readonly #serverName: string | undefined;
  readonly #verify: boolean;
  /** The last session, which spares the next handshake a round trip. */
  #session: Buffer | undefined;

  /** @throws Error when a certificate or a key cannot be used */
  constructor(origin: URL, tls: TlsOptions = { verify: true }) {
    const isSecure = origin.protocol === 'https:';
    this.host = origin.host;
    this.readyEvent = isSecure ? 'secureConnect' : 'connect';
    this.#address = origin.hostname.replace(/^\[|\]$/g, '');
    this.#port = origin.port === '' ? (isSecure ? 443 : 80) : Number(origin.port);
    // RFC 6066 section 3: an address is no server name.
    this.#serverName = tls.servername ?? (isIP(this.#address) === 0 ? this.#address : undefined);
    this.#verify = tls.verify;
    if (isSecure) this.#secureContext = createSecureContext({ ca: tls.ca, cert: tls.cert, key: tls.key });
  }

  /**
   * The socket is not connected yet; what is written waits.
   *
   * @param target takes what is read; without one the socket is an ordinary stream
   */
  open(target?: ReadTarget): Socket {
    const options = {
      host: this.#address,
      port: this.#port,
      lookup: sharedLookup,
      noDelay: true,
      keepAlive: true,
      keepAliveInitialDelay: TCP_KEEP_ALIVE_MS,
      ...(target === undefined ? {} : { onread: readInto(target) }),
    };
    if (this.#secureContext === undefined) return connect(options);
    const socket = tlsConnect({
      ...options,
      secureContext: this.#secureContext,
      rejectUnauthorized: this.#verify,
      ALPNProtocols: ['http/1.1'],
      ...(this.#serverName === undefined ? {} : { servername: this.#serverName }),
      ...(this.#session === undefined ? {} : { session: this.#session }),
    });
    socket.on('session', (session) => {
      this.#session = session;
    });
    return socket;
  }
}

function readInto(target: ReadTarget): OnReadOpts {
  return {
    buffer: () => target.nextBuffer(),
    callback: (byteCount, bytes) => target.onRead(byteCount, bytes as Buffer),
  };
}

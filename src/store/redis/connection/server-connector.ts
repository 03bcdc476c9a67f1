import { connect } from 'node:net';
import { type ConnectionOptions, connect as tlsConnect } from 'node:tls';
import { AbstractConnector, type RedisOptions } from 'ioredis';
import { sharedLookup } from '../../../domain/connections/shared-lookup.ts';

/** As ioredis's own connector for a single server, which has no option for how a name is looked up. */
export class ServerConnector extends AbstractConnector {
  readonly #host: string;
  readonly #port: number;
  readonly #tls: ConnectionOptions | undefined;

  constructor(options: unknown) {
    const { host = 'localhost', port = 6379, tls, disconnectTimeout = 2_000 } = options as RedisOptions;
    super(disconnectTimeout);
    this.#host = host;
    this.#port = port;
    this.#tls = tls;
  }

  async connect() {
    this.connecting = true;
    const address = { host: this.#host, port: this.#port, lookup: sharedLookup };
    const stream = this.#tls === undefined ? connect(address) : tlsConnect({ ...address, ...this.#tls });
    this.stream = stream;
    stream.once('error', (error: Error) => {
      this.firstError = error;
    });
    return stream;
  }
}

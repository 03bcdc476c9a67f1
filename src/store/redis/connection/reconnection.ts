import { type Cluster, type Redis, ReplyError } from 'ioredis';
import { backoffMs } from '../../../domain/backoff.ts';
import { isOfReplica } from './redis-failures.ts';

/** With jitter, below a third of a second: a store that is back counts again within half a second, handshake included. */
const BACKOFF = { firstMs: 20, longestMs: 250 };

/** Errors with which a server refuses a connection, for any command. */
const TURNED_AWAY = /^(DENIED|NOAUTH)|max number of clients/;

/**
 * Delays between attempts to connect to one Redis: short at first, then doubling up to a quarter of a second.
 *
 * ioredis resets its own count once the handshake succeeds, which may happen with a server that then refuses clients. This count
 * is reset only when the server has answered a command.
 */
export class Reconnection {
  #attempts = 0;
  #hasLeftReplica = false;

  /** Whether the last server was a replica, and no other has answered yet. */
  get hasLeftReplica(): boolean {
    return this.#hasLeftReplica;
  }

  /**
   * Whether an error of the server is the reason to look for another: it has become a replica. A name may lead to the new primary while
   * the old one still runs, as with the endpoints of managed services.
   */
  readonly leavesReplica = ({ message }: Error): boolean => {
    if (isOfReplica(message)) this.#hasLeftReplica = true;
    return isOfReplica(message);
  };

  readonly nextDelayMs = (): number => backoffMs(BACKOFF, ++this.#attempts);

  /**
   * Names the connection for CLIENT LIST, which shows whether the server answers commands at all.
   *
   * ioredis's `connectionName` is not used: it is sent with HELLO, and ioredis then drops the error of a server that has
   * reached its maximum of clients.
   *
   * @throws Error if the server refused or closed this connection
   */
  async introduce(client: Redis): Promise<void> {
    try {
      await client.client('SETNAME', 'weir');
    } catch (error) {
      // A server without SETNAME, or that does not allow it, still serves this connection.
      if (!(error instanceof ReplyError) || TURNED_AWAY.test((error as Error).message)) throw error;
    }
    this.#attempts = 0;
    this.#hasLeftReplica = false;
  }

  /**
   * Reconnects the client when ioredis has given up, which it does if a Sentinel reports a failover while it is connecting.
   * Returns a function that disconnects the client for good.
   */
  keepAlive(client: Redis | Cluster): () => void {
    let isClosed = false;
    client.on('end', () => {
      if (isClosed) return;
      setTimeout(() => {
        if (!isClosed && client.status === 'end') client.connect().catch(() => {});
      }, this.nextDelayMs());
    });
    return () => {
      isClosed = true;
      client.disconnect();
    };
  }
}

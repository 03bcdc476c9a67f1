import { type Cluster, type Redis, ReplyError } from 'ioredis';

const LONGEST_RECONNECT_MS = 500;

/** An error with which a server turns the connection away, whatever the command was. */
const TURNED_AWAY = /^(DENIED|NOAUTH)|max number of clients/;

/**
 * The waits between attempts to connect to one Redis: soon at first, then doubling up to half a second, each scattered
 * by a quarter, so that replicas that lost the same Redis come back one by one.
 *
 * ioredis starts its own count again as soon as its handshake is over, which a server that turns clients away may let
 * it finish. This count starts again only when the server has answered a command.
 */
export class Reconnection {
  #attempts = 0;

  readonly nextDelayMs = (): number => {
    const delayMs = Math.min(LONGEST_RECONNECT_MS, 20 * 2 ** Math.min(this.#attempts++, 10));
    return Math.round(delayMs * (0.75 + Math.random() / 2));
  };

  /**
   * Names the connection for CLIENT LIST, which shows whether the server answers commands at all.
   *
   * Not by ioredis's `connectionName`: sent along with HELLO, it makes ioredis drop the error with which a server that
   * is full closes the connection.
   *
   * @throws Error when the server turned this connection away or closed it
   */
  async introduce(client: Redis): Promise<void> {
    try {
      await client.client('SETNAME', 'weir');
    } catch (error) {
      // A server that knows no SETNAME, or does not allow it, serves this connection all the same.
      if (!(error instanceof ReplyError) || TURNED_AWAY.test((error as Error).message)) throw error;
    }
    this.#attempts = 0;
  }

  /**
   * Has the client connect again when ioredis has given up, as it does where a Sentinel's news of a failover reaches it
   * in the middle of connecting. Returns what ends the client for good.
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

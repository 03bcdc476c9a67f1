/**
 * Everything that this store needs of ioredis and ioredis does not document. It is in one file, and
 * test/unit/store/ioredis-internals.test.ts checks each part of it against the installed version.
 *
 * - A command that is encoded here. `redis.evalsha` and `defineCommand` are the public ways to call a script. They encode each argument by
 *   itself, decode the reply, and make promises: a call costs the gateway twice as much. `Command` and `sendCommand` are exported,
 *   but ioredis considers them its own (redis/ioredis issue 1556).
 * - Protected mode. The public option `reconnectOnError` is not called for errors of the handshake, and the clients that ioredis opens for
 *   Sentinels and Cluster nodes are of its own class, so a subclass does not reach them.
 */
import { Command, Redis, ReplyError } from 'ioredis';

const EMPTY = Buffer.alloc(0);

/** A command that encodes itself and takes its reply as bytes. To be sent with `client.sendCommand`; `promise` never settles. */
export abstract class EncodedCommand extends Command {
  readonly #slot: number;

  /** `name` has to be a command for which ioredis has no special case; `slot` is the Cluster slot that decides where it is sent. */
  constructor(name: string, slot: number) {
    super(name);
    this.#slot = slot;
    // ioredis's tracing would wait for the promise.
    this.isTraced = true;
    const resolve = (reply: Buffer) => {
      this.isSettled = true;
      this.answered(undefined, reply);
    };
    const reject = (error: Error) => {
      this.isSettled = true;
      this.answered(error, EMPTY);
    };
    this.resolve = resolve;
    this.reject = reject;
  }

  /** The command in RESP, for this socket. Called when it is written. */
  protected abstract encode(socket: object): string;

  /** Called with the reply, or with the error of Redis or of the connection. */
  protected abstract answered(error: Error | undefined, reply: Buffer): void;

  override getSlot(): number {
    return this.#slot;
  }

  override toWritable(socket: object): string {
    return this.encode(socket);
  }
}

type Send = (...args: unknown[]) => Promise<unknown>;

/**
 * Makes ioredis treat the refusal of a Redis in protected mode as an error.
 *
 * The refusal contains "no password is set". ioredis takes any such error to mean that the server needs no password: it prints a
 * warning on the console, treats the connection as ready, loses it, and reconnects at once.
 */
function reportProtectedMode(): void {
  const commands = Redis.prototype as unknown as Record<'hello' | 'auth', Send>;
  for (const name of ['hello', 'auth'] as const) {
    const send = commands[name];
    commands[name] = async function (this: Redis, ...args) {
      try {
        return await send.apply(this, args);
      } catch (error) {
        throw error instanceof Error && error.message.startsWith('DENIED') ? inProtectedMode() : error;
      }
    };
  }
}

function inProtectedMode(): Error {
  return new ReplyError(
    'DENIED Redis is in protected mode: it has no password and serves its own machine alone. Give it a password',
  );
}

reportProtectedMode();

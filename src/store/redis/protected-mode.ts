/**
 * Makes ioredis treat the refusal of a Redis in protected mode as an error.
 *
 * The refusal contains "no password is set". ioredis takes any such error to mean that the server needs no password: it prints a
 * warning on the console, treats the connection as ready, loses it, and reconnects at once. The class is patched because ioredis
 * itself opens connections to Sentinels and Cluster nodes.
 */
import { Redis, ReplyError } from 'ioredis';

type Command = (...args: unknown[]) => Promise<unknown>;

const commands = Redis.prototype as unknown as Record<'hello' | 'auth', Command>;

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

function inProtectedMode(): Error {
  return new ReplyError(
    'DENIED Redis is in protected mode: it has no password and serves its own machine alone. Give it a password',
  );
}

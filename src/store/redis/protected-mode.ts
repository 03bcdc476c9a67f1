/**
 * Makes ioredis see that a Redis in protected mode refuses it.
 *
 * The refusal says "no password is set". ioredis takes any error with these words for a password that the server does
 * not need: it prints a warning on the console, treats the connection as ready, loses it, and connects again at once.
 * This goes for every connection that ioredis opens by itself as well, to Sentinels and to the nodes of a Cluster, and
 * is therefore done to the class.
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

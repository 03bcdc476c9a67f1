import { Redis, ReplyError } from 'ioredis';

type Send = (...args: unknown[]) => Promise<unknown>;

/**
 * Makes ioredis report the refusal of a Redis in protected mode as an error.
 *
 * The refusal contains "no password is set". ioredis 6.0 takes any such error of its handshake to mean that the server needs no password:
 * it prints a warning on the console, treats the connection as ready, loses it, and never reports why. No option changes that:
 * `reconnectOnError` is not called during the handshake, and ioredis opens the clients of Sentinels and Cluster nodes itself, so a
 * subclass does not reach them.
 *
 * Remove this file when `handleAuthError` in ioredis's `redis/event_handler.js` throws an error that starts with DENIED.
 * test/unit/store/protected-mode.test.ts then passes without it.
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

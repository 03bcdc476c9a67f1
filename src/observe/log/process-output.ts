import { Console } from 'node:console';
import { Writable } from 'node:stream';
import type { Logger } from 'pino';

/** A text that repeats is not logged again within this time. */
const QUIET_MS = 60_000;
const MOST_REMEMBERED = 100;

/**
 * Redirects other output of the process to the log, so that it writes nothing but JSON lines: the console output of
 * libraries, Node's warnings, and the error that ends the process. A repeated text is logged once a minute.
 */
export function logProcessOutput(log: Logger, nowMs: () => number = () => performance.now()): void {
  const isNew = quietly(nowMs);
  globalThis.console = new Console(
    lines((text) => {
      if (isNew(text)) log.warn({ problem: text }, 'a library printed a message');
    }),
  );
  process.removeAllListeners('warning');
  process.on('warning', ({ name, message }) => {
    if (isNew(message)) log.warn({ warning: name, problem: message }, 'a warning of Node');
  });
  process.on('uncaughtException', (error) => {
    log.fatal({ err: error }, 'weir stops because of an unhandled error');
    process.exit(1);
  });
}

/**
 * Runs something without what libraries print meanwhile: ioredis prints the stack of each Sentinel that it cannot reach, and goes on with
 * another.
 */
export async function withoutLibraryOutput<T>(run: () => Promise<T>): Promise<T> {
  const own = globalThis.console;
  globalThis.console = new Console(lines(() => {}));
  try {
    return await run();
  } finally {
    globalThis.console = own;
  }
}

/** Whether a text was not seen within the last minute. */
export function quietly(nowMs: () => number): (text: string) => boolean {
  const quietUntilMs = new Map<string, number>();
  return (text) => {
    const now = nowMs();
    if ((quietUntilMs.get(text) ?? now) > now) return false;
    if (quietUntilMs.size >= MOST_REMEMBERED) quietUntilMs.clear();
    quietUntilMs.set(text, now + QUIET_MS);
    return true;
  };
}

function lines(write: (text: string) => void): Writable {
  return new Writable({
    decodeStrings: false,
    write(chunk, _encoding, done) {
      write(String(chunk).trimEnd());
      done();
    },
  });
}

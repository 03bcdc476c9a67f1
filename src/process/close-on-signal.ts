import type { Awaitable } from '../domain/awaitable.ts';

/** What a signal closes. */
interface Running {
  close(): Promise<void>;
  /** Default: `close`. */
  drain?(): Promise<void>;
}

/**
 * Ends the process once at a signal, and returns a function that takes what is closed first: by `close` on SIGINT or when the process
 * that started this one is gone, by `drain` on SIGTERM and SIGHUP. What is still starting is closed as soon as it has started, because
 * nobody sends requests to it yet. A second SIGTERM or SIGINT ends the process at once; SIGHUP does not, because a terminal that closes
 * may send it twice.
 *
 * Call it first: the kernel drops a signal without a handler if the process is the first of its container.
 */
export function closeOnSignal(): (given: Awaitable<Running>) => Promise<void> {
  let isEnding = false;
  let isStarted = false;
  let starting: Promise<Running> = Promise.resolve({ close: async () => {} });
  const end = (isTerminated: boolean): void => {
    if (isEnding) process.exit(1);
    isEnding = true;
    const isDraining = isTerminated && isStarted;
    void starting.then(
      ({ close, drain = close }) => (isDraining ? drain() : close()).then(() => process.exit(0)),
      // The caller reports why it did not start.
      () => undefined,
    );
  };
  process.on('SIGTERM', () => end(true));
  process.on('SIGINT', () => end(false));
  process.on('SIGHUP', () => {
    if (!isEnding) end(true);
  });
  process.once('disconnect', () => {
    if (!isEnding) end(false);
  });
  // The listener alone would keep a process alive that could not start.
  process.channel?.unref();
  return async (given) => {
    starting = Promise.resolve(given);
    await starting;
    isStarted = true;
  };
}

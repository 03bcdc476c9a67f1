import { waitBriefly } from '../program/grace.ts';

/** A loop that looks for work until it is stopped. */
export interface Polling {
  /** Looks for work now, or again after the current look. */
  wake(): void;
  /** Ends the loop. Waits briefly for the current look. */
  stop(): Promise<void>;
}

/**
 * Calls `look` repeatedly: immediately if it resolved with true (there may be more), otherwise after `intervalMs` or when
 * `wake` is called. If `look` fails, the error is reported and the loop continues after the interval.
 */
export function startPolling(
  intervalMs: number,
  look: () => Promise<boolean>,
  onError: (error: Error) => void,
): Polling {
  let isStopped = false;
  let isWoken = false;
  let endWait: () => void = () => undefined;

  const wait = () =>
    new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, intervalMs);
      endWait = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  const loop = async () => {
    while (!isStopped) {
      isWoken = false;
      const hasMore = await look().catch((error: Error) => {
        onError(error);
        return false;
      });
      if (!hasMore && !isWoken) await wait();
    }
  };
  const wake = () => {
    isWoken = true;
    endWait();
  };
  const ended = loop();
  return {
    wake,
    async stop() {
      isStopped = true;
      wake();
      await waitBriefly(ended);
    },
  };
}

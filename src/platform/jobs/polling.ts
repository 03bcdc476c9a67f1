/** A loop that looks for work until it is stopped. */
export interface Polling {
  /** There may be work: look now, or once more after the present look. */
  wake(): void;
  /** Resolves once the present look has ended; there is none after it. */
  stop(): Promise<void>;
}

/**
 * Calls `look` again and again: at once if it resolves with true (there may be more), otherwise after `intervalMs` or
 * as soon as `wake` is called. A look that fails is reported and repeated after the interval.
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
      await ended;
    },
  };
}

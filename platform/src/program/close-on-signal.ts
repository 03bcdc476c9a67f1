interface Running {
  close(): Promise<void>;
}

/**
 * Closes what has started, once: on SIGINT, SIGTERM and SIGHUP, and when the process that started this one is gone. While it starts, there
 * is nothing to close, and the process ends at once. A second SIGTERM or SIGINT always ends it at once; SIGHUP does not, because a
 * terminal that closes may send it twice.
 *
 * Call it before `starting` has settled: the kernel drops a signal without a handler if the process is the first of its container.
 */
export function closeOnSignal(starting: Promise<Running>): void {
  let running: Running | undefined;
  let isClosing = false;
  const end = (): void => {
    if (isClosing) return;
    isClosing = true;
    if (running === undefined) process.exit(0);
    void running.close().then(() => process.exit(0));
  };
  const endAtOnce = (): void => {
    if (isClosing) process.exit(1);
    end();
  };
  const handlers = { SIGTERM: endAtOnce, SIGINT: endAtOnce, SIGHUP: end, disconnect: end };
  for (const [event, handler] of Object.entries(handlers)) process.on(event, handler);
  starting.then(
    (started) => {
      running = started;
    },
    () => {
      for (const [event, handler] of Object.entries(handlers)) process.off(event, handler);
    },
  );
}

/**
 * Closes once: on SIGINT, SIGTERM and SIGHUP, and when the process that started this one is gone. A second SIGTERM or SIGINT ends
 * it at once; SIGHUP does not, because a terminal that closes may send it twice.
 */
export function closeOnSignal(close: () => Promise<void>): void {
  let isClosing = false;
  const end = (): void => {
    if (isClosing) return;
    isClosing = true;
    void close().then(() => process.exit(0));
  };
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => {
      if (isClosing) process.exit(1);
      end();
    });
  }
  process.on('SIGHUP', end);
  process.once('disconnect', end);
}

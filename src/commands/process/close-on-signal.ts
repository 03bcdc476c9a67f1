/**
 * Closes once: by `close` on SIGINT or when the process that started this one is gone, by `drain` on SIGTERM. A second
 * signal ends it at once.
 */
export function closeOnSignal(close: () => Promise<void>, drain: () => Promise<void> = close): void {
  let isClosing = false;
  const end = (how: () => Promise<void>): void => {
    if (isClosing) process.exit(1);
    isClosing = true;
    void how().then(() => process.exit(0));
  };
  process.on('SIGTERM', () => end(drain));
  process.on('SIGINT', () => end(close));
  process.once('disconnect', () => {
    if (!isClosing) end(close);
  });
}

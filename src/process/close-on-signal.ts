/**
 * Closes once: by `close` on SIGINT or when the process that started this one is gone, by `drain` on SIGTERM and SIGHUP. A
 * second SIGTERM or SIGINT ends it at once; SIGHUP does not, because a terminal that closes may send it twice.
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
  process.on('SIGHUP', () => {
    if (!isClosing) end(drain);
  });
  process.once('disconnect', () => {
    if (!isClosing) end(close);
  });
}

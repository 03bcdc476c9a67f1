/** Exit code of a program that a closed pipe ended, as in a shell. */
const BROKEN_PIPE = 141;

const CANNOT_WRITE = 1;

let isWatched = false;

/** Standard output. The command ends when its reader has gone, as `head` goes, or when the disk is full. */
export function standardOutput(): NodeJS.WriteStream {
  watch();
  return process.stdout;
}

/** Standard error. A command goes on if nobody reads it. */
export function standardError(): NodeJS.WriteStream {
  watch();
  return process.stderr;
}

/** Not before the first output of a command: opening the stream of a pipe changes how the log writes to it. */
function watch(): void {
  if (isWatched) return;
  isWatched = true;
  process.stderr.on('error', () => {});
  process.stdout.on('error', ({ code }: NodeJS.ErrnoException) => {
    if (code === 'EPIPE') process.exit(BROKEN_PIPE);
    process.stderr.write(`Standard output cannot be written (${code}).\n`);
    process.exit(CANNOT_WRITE);
  });
}

import { closeSync, constants, fstatSync, openSync, readSync, type Stats, statSync } from 'node:fs';
import { fileError } from '../problem.ts';

/** Larger than any real configuration: the largest public OpenAPI documents have about 40 MiB. */
const MAX_FILE_MIB = 64;
const MAX_FILE_BYTES = MAX_FILE_MIB * 1024 * 1024;

const CHUNK_BYTES = 65_536;

/**
 * The text of a file. Throws a ConfigError with one problem if it cannot be read. Anything but a regular file, such as a
 * device or a named pipe, is refused without being read, because reading it might never end.
 */
export function readText(path: string, hint: string): string {
  try {
    // Check before opening as well, because opening some devices has side effects.
    refuse(statSync(path));
    // Non-blocking: if a pipe has just replaced the file, a blocking open would wait for a writer.
    const file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      const state = fstatSync(file);
      refuse(state);
      return readAll(file, state.size);
    } finally {
      closeSync(file);
    }
  } catch (error) {
    throw fileError(path, reasonOf(error), hint);
  }
}

/** Thrown for a file that is refused. The message is the reason. */
class UnreadableFile extends Error {}

function refuse(state: Stats): void {
  if (state.isDirectory()) throw new UnreadableFile(REASONS.EISDIR);
  if (!state.isFile()) throw new UnreadableFile(`is ${kindOf(state)}, not a file`);
  if (state.size > MAX_FILE_BYTES) throw new UnreadableFile(TOO_LARGE);
}

function kindOf(state: Stats): string {
  if (state.isFIFO()) return 'a named pipe';
  return state.isSocket() ? 'a socket' : 'a device';
}

/** Reads until the end, because a file may grow while it is read and files in /proc report no size. */
function readAll(file: number, size: number): string {
  const chunks: Buffer[] = [];
  for (let bytes = 0; ; ) {
    const chunk = Buffer.allocUnsafe(Math.max(CHUNK_BYTES, size + 1 - bytes));
    const read = readSync(file, chunk);
    if (read === 0) return textOf(Buffer.concat(chunks));
    bytes += read;
    if (bytes > MAX_FILE_BYTES) throw new UnreadableFile(TOO_LARGE);
    chunks.push(chunk.subarray(0, read));
  }
}

/** Windows PowerShell writes UTF-16 where output goes to a file. */
function textOf(bytes: Buffer): string {
  const [first, second] = bytes;
  if ((first === 0xff && second === 0xfe) || (first === 0xfe && second === 0xff))
    throw new UnreadableFile('is in UTF-16: save it as UTF-8');
  return bytes.toString('utf8');
}

function reasonOf(error: unknown): string {
  if (error instanceof UnreadableFile) return error.message;
  const { code = String(error) } = error as NodeJS.ErrnoException;
  return REASONS[code as keyof typeof REASONS] ?? `cannot be read (${code})`;
}

const TOO_LARGE = `is larger than ${MAX_FILE_MIB} MiB`;

const REASONS = {
  ENOENT: 'does not exist',
  ENOTDIR: 'does not exist',
  EACCES: 'cannot be read: permission denied',
  EISDIR: 'is a folder, not a file',
  ELOOP: 'is a loop of symbolic links',
};

import { closeSync, constants, fstatSync, openSync, readSync, type Stats, statSync } from 'node:fs';
import { ConfigError } from '../problem.ts';

/** No configuration comes near it: the largest public OpenAPI documents have some 40 MiB. */
const MAX_FILE_MIB = 64;
const MAX_FILE_BYTES = MAX_FILE_MIB * 1024 * 1024;

const CHUNK_BYTES = 65_536;

/**
 * The text of a file, or a ConfigError that says in one sentence why there is none. What is not a regular file, such as
 * a device or a named pipe, is refused without being read, because it may never end.
 */
export function readText(path: string, hint: string): string {
  try {
    // Before it is opened as well: opening some devices acts on them.
    refuse(statSync(path));
    // Non-blocking, or opening a pipe that replaced the file just now would wait for a writer.
    const file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      const state = fstatSync(file);
      refuse(state);
      return readAll(file, state.size);
    } finally {
      closeSync(file);
    }
  } catch (error) {
    throw new ConfigError([{ source: path, path: '', message: reasonOf(error), hint }]);
  }
}

/** A file that is not read; the message says why. */
class Refusal extends Error {}

function refuse(state: Stats): void {
  if (state.isDirectory()) throw new Refusal(REASONS.EISDIR);
  if (!state.isFile()) throw new Refusal(`is ${kindOf(state)}, not a file`);
  if (state.size > MAX_FILE_BYTES) throw new Refusal(TOO_LARGE);
}

function kindOf(state: Stats): string {
  if (state.isFIFO()) return 'a named pipe';
  return state.isSocket() ? 'a socket' : 'a device';
}

/** A file may grow while it is read, and those of /proc have no size. */
function readAll(file: number, size: number): string {
  const chunks: Buffer[] = [];
  for (let bytes = 0; ; ) {
    const chunk = Buffer.allocUnsafe(Math.max(CHUNK_BYTES, size + 1 - bytes));
    const read = readSync(file, chunk);
    if (read === 0) return Buffer.concat(chunks).toString('utf8');
    bytes += read;
    if (bytes > MAX_FILE_BYTES) throw new Refusal(TOO_LARGE);
    chunks.push(chunk.subarray(0, read));
  }
}

function reasonOf(error: unknown): string {
  if (error instanceof Refusal) return error.message;
  const { code = String(error) } = error as NodeJS.ErrnoException;
  return REASONS[code as keyof typeof REASONS] ?? `cannot be read (${code})`;
}

const TOO_LARGE = `is larger than ${MAX_FILE_MIB} MiB`;

const REASONS = {
  ENOENT: 'there is no such file',
  ENOTDIR: 'there is no such file',
  EACCES: 'this process may not read it',
  EISDIR: 'is a folder, not a file',
  ELOOP: 'its symbolic links lead round in a ring',
};

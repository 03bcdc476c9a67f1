import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { hostname, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { DatabaseUnavailable } from './unavailable.ts';

/** The only right to write in a directory, until it is released or this process ends. */
export interface DirectoryLock {
  release(): Promise<void>;
}

const PREFIX = 'weir-lock.';
/** Addresses of Unix sockets end after 108 bytes on Linux and 104 on macOS. */
const MAX_ADDRESS_BYTES = 100;
/** How long a process may take to answer. Without an answer, Weir assumes that it has the lock. */
const ANSWER_MS = 3000;
/** How long to wait for processes that started at the same time. Each of them decides within a few answers. */
const START_MS = 10_000;
const PAUSE_MS = 20;

/**
 * Creates the directory if necessary, and locks it.
 *
 * A process that has or wants the lock listens at a Unix socket of its own in the directory. The kernel refuses connections
 * from the moment at which that process ends, however it ends, so a restart never waits and the lock of a process that is only
 * suspended or busy remains. A file with a process id would not do, because containers that share a volume do not share
 * process ids; a time that is renewed would not do, because a long query keeps this process from renewing it.
 *
 * Works among all processes and containers of one machine. Other machines that share the directory, as on NFS, are not noticed.
 *
 * @throws DatabaseUnavailable if another process has the lock, or the directory cannot be written
 */
export async function lockDirectory(directory: string): Promise<DirectoryLock> {
  let address: ReturnType<typeof addressOf> | undefined;
  try {
    mkdirSync(directory, { recursive: true });
    address = addressOf(directory);
    return await lock(directory, address.path);
  } catch (error) {
    throw toUnavailable(directory, error);
  } finally {
    address?.forget();
  }
}

async function lock(directory: string, address: string): Promise<DirectoryLock> {
  const name = PREFIX + randomBytes(4).toString('hex');
  let isHolder = false;
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.end(isHolder ? `process ${process.pid} on ${hostname()}` : '', () => socket.destroy());
  });
  // A process of another user must be able to find out whether this process has ended.
  server.listen({ path: join(address, name), readableAll: true, writableAll: true });
  await once(server, 'listening');
  // A connection that cannot be accepted comes from another process that wants the lock. Without an answer, that process
  // assumes that this one is busy.
  server.on('error', () => undefined).unref();
  const release = async () => {
    server.close();
    rmSync(join(directory, name), { force: true });
    await once(server, 'close');
  };
  try {
    await waitForOthers(directory, address, name);
  } catch (error) {
    await release();
    throw error;
  }
  isHolder = true;
  return { release };
}

/**
 * Resolves when no other process has or wants the lock. Everybody listens before looking, so of two processes at least one
 * finds the other. Of processes that start at once, the one with the lowest name goes on.
 */
async function waitForOthers(directory: string, address: string, ownName: string): Promise<void> {
  const deadlineMs = performance.now() + START_MS;
  for (;;) {
    const starting = await findStarting(directory, address, ownName);
    // Another process may have removed the name of this one, if it looked between the creation of the socket and its first moment
    // of listening.
    const isListed = existsSync(join(directory, ownName));
    if (isListed && starting.length === 0) return;
    const isFirst = isListed && starting.every((name) => ownName < name);
    if (!isFirst || performance.now() > deadlineMs) throw inUse(directory, 'a process that is starting');
    await sleep(PAUSE_MS);
  }
}

/** The other processes that are still waiting for the lock. Removes the names of processes that have ended. */
async function findStarting(directory: string, address: string, ownName: string): Promise<string[]> {
  const starting: string[] = [];
  for (const name of readdirSync(directory)) {
    if (!name.startsWith(PREFIX) || name === ownName) continue;
    if (await isStarting(directory, join(address, name))) starting.push(name);
    else rmSync(join(directory, name), { force: true });
  }
  return starting;
}

/**
 * Whether the process that listens there is still waiting for the lock. False if that process has ended.
 *
 * @throws DatabaseUnavailable if it has the lock, or does not answer because it is suspended or busy
 */
function isStarting(directory: string, path: string): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const socket = connect(path).setEncoding('utf8').setTimeout(ANSWER_MS);
    let text = '';
    const refuse = (holder: string) => reject(inUse(directory, holder));
    socket.on('data', (chunk) => {
      text += chunk;
    });
    socket.on('end', () => (text === '' ? resolve(true) : refuse(text)));
    socket.on('timeout', () => {
      refuse('another process');
      socket.destroy();
    });
    socket.on('error', ({ code }: NodeJS.ErrnoException) => {
      if (code === 'ECONNREFUSED' || code === 'ENOENT') resolve(false);
      // It ended while it was asked.
      else if (code === 'ECONNRESET') resolve(isStarting(directory, path));
      else refuse('another process');
    });
  });
}

/** The directory, or a link to it where the names of its sockets would be too long. */
function addressOf(directory: string): { readonly path: string; forget(): void } {
  const path = resolve(directory);
  if (Buffer.byteLength(path) + PREFIX.length + 9 <= MAX_ADDRESS_BYTES)
    return { path, forget: () => undefined };
  const parent = mkdtempSync(join(tmpdir(), 'weir-'));
  const link = join(parent, 'data');
  symlinkSync(path, link);
  return { path: link, forget: () => rmSync(parent, { recursive: true, force: true }) };
}

function inUse(directory: string, by: string): DatabaseUnavailable {
  return new DatabaseUnavailable(
    `The directory ${directory} is in use by ${by}: stop that process, or choose another directory.`,
  );
}

const REASONS: Readonly<Record<string, string>> = {
  EACCES: 'this user may not write in it',
  EROFS: 'it is read-only',
  ENOENT: 'it cannot be created',
  ENOSPC: 'its disk is full',
  EEXIST: 'it is a file',
  ENOTDIR: 'part of its path is a file',
  ENOTSUP: 'its file system has no Unix sockets, which lock it',
  EOPNOTSUPP: 'its file system has no Unix sockets, which lock it',
};

function toUnavailable(directory: string, error: unknown): unknown {
  const { code = '', message, syscall } = error as NodeJS.ErrnoException;
  if (syscall === undefined) return error;
  // Another process looked before the socket listened, and took it for the socket of a process that has ended.
  if (syscall === 'uv_pipe_chmod' && code === 'ENOENT') return inUse(directory, 'a process that is starting');
  const reason = REASONS[code] ?? message;
  return new DatabaseUnavailable(`The directory ${directory} cannot be used: ${reason}.`, { cause: error });
}

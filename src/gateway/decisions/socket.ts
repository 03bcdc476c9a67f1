import { once } from 'node:events';
import { chmod, lstat, unlink } from 'node:fs/promises';
import { connect } from 'node:net';

/** Its owner and its group may connect. */
const MODE = 0o660;

/** Why a Unix socket cannot be opened. */
export class UnusableSocket extends Error {
  override readonly name = 'UnusableSocket';
}

/**
 * Opens a Unix socket. One that another process has left behind is replaced.
 *
 * @throws UnusableSocket if the path is another kind of file, if a process listens there, or if this user may not create it
 */
export async function listenAtSocket(path: string, listen: () => Promise<unknown>): Promise<void> {
  await removeStale(path);
  try {
    await listen();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EACCES') throw error;
    throw new UnusableSocket(
      `${path} cannot be created: its folder must exist, and this user must be able to write to it.`,
    );
  }
  await chmod(path, MODE);
}

async function removeStale(path: string): Promise<void> {
  const found = await lstat(path).catch(() => undefined);
  if (found === undefined) return;
  if (!found.isSocket()) throw new UnusableSocket(`${path} is there already, and is not a socket.`);
  const refusal = await whyRefused(path);
  if (refusal === undefined) throw new UnusableSocket(`Another process listens at ${path}.`);
  if (refusal !== 'ECONNREFUSED') {
    throw new UnusableSocket(`${path} is a socket of another user: ${refusal}.`);
  }
  await unlink(path);
}

/** The code of the error with which a connection fails; undefined if a process accepts it. */
async function whyRefused(path: string): Promise<string | undefined> {
  const socket = connect(path);
  try {
    await once(socket, 'connect');
    return undefined;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? 'unknown';
  } finally {
    socket.destroy();
  }
}

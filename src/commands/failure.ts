import { ConfigError } from '../config/problem.ts';

/** A command that failed, with a message for the user. */
export class CommandError extends Error {
  override readonly name = 'CommandError';
}

interface SystemError extends NodeJS.ErrnoException {
  readonly address?: string;
  readonly port?: number;
}

/** The message of a failed command; without a stack for errors that the user can fix. */
export function failureText(error: unknown): string {
  if (error instanceof ConfigError || error instanceof CommandError) return error.message;
  if (!(error instanceof Error)) return String(error);
  const { code, syscall, address, port } = error as SystemError;
  if (code === 'EADDRINUSE') {
    return `Port ${port} on ${address} is in use: stop what listens there, or choose another port.`;
  }
  if (code === 'EACCES' && port !== undefined)
    return `Port ${port} on ${address} may not be opened by this user.`;
  if (code === 'EADDRNOTAVAIL') return `This machine has no address ${address}.`;
  // The system refused a call: its message names the call and the path, such as `EACCES: permission denied, open 'weir.yaml'`.
  if (syscall !== undefined) return error.message;
  return error.stack ?? error.message;
}

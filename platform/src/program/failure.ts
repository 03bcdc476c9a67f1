import { DatabaseUnavailable } from '../database/unavailable.ts';
import { PlatformCallError } from '../development/client.ts';

/** An option that cannot be used. The message is meant for users. */
export class OptionError extends Error {}

export function isHttpUrl(text: string): boolean {
  return /^https?:\/\//i.test(text) && URL.canParse(text);
}

const CLEAR = [OptionError, PlatformCallError, DatabaseUnavailable];

interface SystemError extends NodeJS.ErrnoException {
  readonly address?: string;
  readonly port?: number;
}

/** The message of a failed command, in lines; without a stack for errors that the user can fix. */
export function failureLines(error: unknown): readonly string[] {
  if (!(error instanceof Error)) return [String(error)];
  if (CLEAR.some((kind) => error instanceof kind)) return [error.message];
  const { code, syscall, address, port } = error as SystemError;
  if (code === 'EADDRINUSE')
    return [`Port ${port} on ${address} is in use: stop what listens there, or choose another port.`];
  if (code === 'EACCES' && port !== undefined)
    return [`Port ${port} on ${address} may not be opened by this user.`];
  if (code === 'EADDRNOTAVAIL') return [`This machine has no address ${address}.`];
  if (syscall !== undefined) return [error.message];
  return [`${error.name}: ${error.message}`, ...((error.stack ?? '').match(/^ {4}at .*/gm) ?? [])];
}

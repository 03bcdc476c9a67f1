import { ConfigError, formatProblem } from '../config/problem.ts';

/** A command that failed, with a message for the user, in one or more lines. */
export class CommandError extends Error {
  override readonly name = 'CommandError';
  readonly lines: readonly string[];

  constructor(...lines: readonly string[]) {
    super(lines.join('\n'));
    this.lines = lines;
  }
}

/** The message of a failed command, in lines; without a stack for errors that the user can fix. */
export function failureLines(error: unknown): readonly string[] {
  if (error instanceof ConfigError) return error.problems.map(formatProblem);
  if (error instanceof CommandError) return error.lines;
  if (!(error instanceof Error)) return [String(error)];
  return systemFailure(error) ?? [`${error.name}: ${error.message}`, ...framesOf(error)];
}

/** Undefined if the system is not the cause. */
function systemFailure(error: Error): readonly string[] | undefined {
  const { code, syscall, address, port } = error as NodeJS.ErrnoException & {
    address?: string;
    port?: number;
  };
  if (code === 'EADDRINUSE') {
    return [`Port ${port} on ${address} is in use: stop what listens there, or choose another port.`];
  }
  if (code === 'EACCES' && port !== undefined)
    return [`Port ${port} on ${address} may not be opened by this user.`];
  if (code === 'EADDRNOTAVAIL') return [`This machine has no address ${address}.`];
  // The system refused a call: its message names the call and the path, such as `EACCES: permission denied, open 'weir.yaml'`.
  return syscall === undefined ? undefined : [error.message];
}

function framesOf({ stack = '' }: Error): readonly string[] {
  return stack.match(/^ {4}at .*/gm) ?? [];
}

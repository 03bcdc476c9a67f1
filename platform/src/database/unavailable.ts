/** The database cannot be opened for a reason outside of this program. The message has the reason. */
export class DatabaseUnavailable extends Error {
  override readonly name = 'DatabaseUnavailable';
}

/** SQLSTATE of failed connections, refused credentials, unknown databases, missing rights, and servers that are full or stopping. */
const OUTSIDE = /^(08|28|3D|53|57P|42501)/;

/** The error as a DatabaseUnavailable if its reason is outside of this program, and otherwise itself. */
export function openingError(error: unknown): unknown {
  // A host with several addresses gives an AggregateError, with a reason for each.
  const [first] = error instanceof AggregateError ? error.errors : [error];
  if (!(first instanceof Error)) return error;
  const { code = '', syscall } = first as NodeJS.ErrnoException;
  const isTimeout = code === '' && first.message.includes('timeout');
  if (syscall === undefined && !isTimeout && !OUTSIDE.test(code)) return error;
  return new DatabaseUnavailable(`The database cannot be opened: ${first.message}.`, { cause: error });
}

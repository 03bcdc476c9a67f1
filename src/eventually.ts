/** A value that is there already, or comes later. */
export type Eventually<T> = T | Promise<T>;

/** Goes on with a value: at once where it is there, so that nothing waits a turn, or pays for a promise, without need. */
export function whenKnown<T, U>(value: Eventually<T>, next: (value: T) => Eventually<U>): Eventually<U> {
  return value instanceof Promise ? value.then(next) : next(value);
}

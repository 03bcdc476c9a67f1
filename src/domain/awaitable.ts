/** A value, or a promise of it. */
export type Awaitable<T> = T | Promise<T>;

/** Calls `next` synchronously if the value is ready; avoids a promise per request. */
export function andThen<T, U>(value: Awaitable<T>, next: (value: T) => Awaitable<U>): Awaitable<U> {
  return value instanceof Promise ? value.then(next) : next(value);
}

import { setImmediate as nextTurn } from 'node:timers/promises';

/** A value that is ready, or comes later: a Promise or a Later. */
export type Awaitable<T> = T | PromiseLike<T>;

/** Whether a value comes later. */
export function isLate<T>(value: Awaitable<T>): value is PromiseLike<T> {
  return value instanceof Later || value instanceof Promise;
}

/** Calls `next` at once if the value is ready; avoids a promise per request. */
export function andThen<T, U>(value: Awaitable<T>, next: (value: T) => Awaitable<U>): Awaitable<U> {
  return isLate(value) ? value.then(next) : next(value);
}

/** Like `andThen`, but passes `context` to `next`. A closure and its variables would take 110 bytes of heap per request. */
export function andThenWith<T, U, C>(
  value: Awaitable<T>,
  next: (value: T, context: C) => Awaitable<U>,
  context: C,
): Awaitable<U> {
  if (value instanceof Later) return value.thenWith(next, context);
  return isLate(value) ? afterPromise(value, next, context) : next(value, context);
}

function afterPromise<T, U, C>(
  value: PromiseLike<T>,
  next: (value: T, context: C) => Awaitable<U>,
  context: C,
): PromiseLike<U> {
  return value.then((late) => next(late, context));
}

type Next<T, U> = ((value: T) => Awaitable<U>) | null | undefined;

/**
 * A value that comes later, for one receiver. It is chained and awaited as a promise is, but passes its value on at once: a request that
 * waits for the store goes through six of them, and would go through the queue of microtasks as often.
 */
export class Later<T> implements PromiseLike<T> {
  #receiver: Receiver<T> | undefined;
  #early: { readonly value: T } | { readonly error: unknown } | undefined;

  resolve(value: T): void {
    if (this.#receiver === undefined) this.#early = { value };
    else this.#receiver.take(value);
  }

  /** An unhandled error ends the process, like an unhandled rejection. */
  reject(error: unknown): void {
    if (this.#receiver !== undefined) {
      this.#receiver.takeError(error);
      return;
    }
    this.#early = { error };
    setImmediate(() => {
      if (this.#receiver === undefined) throw error;
    });
  }

  // biome-ignore lint/suspicious/noThenProperty: callers that do not need the speed await it.
  then<U = T, V = never>(next?: Next<T, U>, failed?: Next<unknown, V>): Later<U | V> {
    return this.#passTo(new Step(next, failed));
  }

  /** Like `then`, but passes `context` to `next`, so that no closure is needed. */
  thenWith<U, C>(next: (value: T, context: C) => Awaitable<U>, context: C): Later<U> {
    return this.#passTo(new StepWith(next, context));
  }

  #passTo<S extends Receiver<T>>(step: S): S {
    this.#receiver = step;
    if (this.#early === undefined) return step;
    if ('error' in this.#early) step.takeError(this.#early.error);
    else step.take(this.#early.value);
    return step;
  }

  /** Resolves with what `next` returns, which may itself come later, or rejects with what it throws. */
  protected run<V, C>(next: (value: V, context: C) => Awaitable<T>, value: V, context: C): void {
    let result: Awaitable<T>;
    try {
      result = next(value, context);
    } catch (error) {
      this.reject(error);
      return;
    }
    if (isLate(result)) this.#follow(result);
    else this.resolve(result);
  }

  #follow(result: PromiseLike<T>): void {
    result.then(
      (late) => this.resolve(late),
      (error) => this.reject(error),
    );
  }
}

interface Receiver<T> {
  take(value: T): void;
  takeError(error: unknown): void;
}

/** What becomes of a value that comes later. */
class Step<T, U, V> extends Later<U | V> {
  readonly #next: Next<T, U>;
  readonly #failed: Next<unknown, V>;

  constructor(next: Next<T, U>, failed: Next<unknown, V>) {
    super();
    this.#next = next;
    this.#failed = failed;
  }

  take(value: T): void {
    if (this.#next) this.run(this.#next, value, undefined);
    else this.resolve(value as unknown as U);
  }

  takeError(error: unknown): void {
    if (this.#failed) this.run(this.#failed, error, undefined);
    else this.reject(error);
  }
}

/** A step that passes `context` to its function. */
class StepWith<T, U, C> extends Later<U> {
  readonly #next: (value: T, context: C) => Awaitable<U>;
  readonly #context: C;

  constructor(next: (value: T, context: C) => Awaitable<U>, context: C) {
    super();
    this.#next = next;
    this.#context = context;
  }

  take(value: T): void {
    this.run(this.#next, value, this.#context);
  }

  takeError(error: unknown): void {
    this.reject(error);
  }
}

/**
 * What the promise resolves to, or undefined once the time is over.
 *
 * @param isKeepingAlive whether the process stays alive for it
 */
export function withinMs<T>(promise: Promise<T>, ms: number, isKeepingAlive = true): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms, undefined);
    if (!isKeepingAlive) timer.unref();
    void promise.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}

/** The items of a list that may be long. Each `perTurn` of them are followed by a turn of the event loop, in which requests are served. */
export async function* inTurns<T>(items: Iterable<T>, perTurn: number): AsyncGenerator<T> {
  let taken = 0;
  for (const item of items) {
    yield item;
    if (++taken % perTurn === 0) await nextTurn();
  }
}

/**
 * Finds calls that are not settled `deadlineMs` after they were watched. One timer serves all calls, because they are due in
 * order; a timer per call would cost more than a request's share of the call.
 */
export class Deadline<Call> {
  readonly #deadlineMs: number;
  readonly #isSettled: (call: Call) => boolean;
  readonly #missed: (call: Call) => void;
  #watched: { readonly call: Call; readonly dueMs: number }[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(deadlineMs: number, isSettled: (call: Call) => boolean, missed: (call: Call) => void) {
    this.#deadlineMs = deadlineMs;
    this.#isSettled = isSettled;
    this.#missed = missed;
  }

  watch(call: Call): void {
    this.#watched.push({ call, dueMs: performance.now() + this.#deadlineMs });
    this.#timer ??= this.#wakeIn(this.#deadlineMs);
  }

  /** Unsettled calls. */
  pending(): Call[] {
    return this.#watched.map(({ call }) => call).filter((call) => !this.#isSettled(call));
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#watched = [];
  }

  /** Timers run before sockets are read, so after a long task, replies that have arrived are read first. */
  #wakeIn(delayMs: number): NodeJS.Timeout {
    return setTimeout(() => setImmediate(() => this.#sweep()), delayMs);
  }

  #sweep(): void {
    const nowMs = performance.now();
    const waiting = this.#watched.findIndex(({ call, dueMs }) => dueMs > nowMs && !this.#isSettled(call));
    const done = this.#watched.splice(0, waiting === -1 ? this.#watched.length : waiting);
    const next = this.#watched[0];
    this.#timer = next === undefined ? undefined : this.#wakeIn(Math.max(1, next.dueMs - nowMs));
    for (const { call } of done) if (!this.#isSettled(call)) this.#missed(call);
  }
}

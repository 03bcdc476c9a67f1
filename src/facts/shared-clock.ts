import type { ClockReading } from '../store/shared-store.ts';

/** A clock of a computer is wrong by less than this share of the time that passes. */
const DRIFT = 0.0005;

/** Redis cuts microseconds off, and a reading of both clocks takes a moment. */
const READING_ERROR_MS = 2;

/** The difference from which a replica's own clock counts as wrong, and this clock as set back. */
const TOLERATED_MS = 1_000;

/**
 * The clock of Redis, as this process estimates it. Everything that replicas share expires by it, so replicas agree on what is in force
 * however wrong their own clocks are. In a Cluster it is the clock of the server that has the live limits. Between readings it runs with
 * the monotonic clock. Before the first reading, and without Redis, it is the process's own.
 */
export class SharedClock {
  readonly #ownMs: () => number;
  readonly #monotonicMs: () => number;
  /** `originMs`: Unix time by the clock of Redis when `performance.now()` was 0. It is wrong by at most `errorMs`. */
  #estimate: { readonly originMs: number; readonly errorMs: number; readonly takenMs: number } | undefined;
  #wasOwnWrong = false;
  /** The time at the last look. */
  #seenMs = Number.NEGATIVE_INFINITY;
  /** Called when this clock is set back by more than a second: what had ended by it may be in force again. */
  onSetBack: () => void = () => {};

  constructor(ownMs: () => number = Date.now, monotonicMs: () => number = () => performance.now()) {
    this.#ownMs = ownMs;
    this.#monotonicMs = monotonicMs;
  }

  /** Unix time. */
  nowMs(): number {
    const estimate = this.#estimate;
    return estimate === undefined ? this.#ownMs() : Math.floor(estimate.originMs + this.#monotonicMs());
  }

  /** How far this process's own clock is ahead of the clock of Redis; undefined before the first reading. */
  get offsetMs(): number | undefined {
    return this.#estimate === undefined ? undefined : this.#ownMs() - this.nowMs();
  }

  /** Whether the own clock certainly differs by more than a second. */
  get isOwnWrong(): boolean {
    const { offsetMs = 0 } = this;
    return Math.abs(offsetMs) > TOLERATED_MS + (this.#estimate?.errorMs ?? 0);
  }

  /**
   * Takes a reading, unless an earlier one is more exact and agrees with it. Returns whether `isOwnWrong` has changed.
   *
   * @param isReference false for a server of a Cluster whose clock is used only until the reference has been read
   */
  read(reading: ClockReading, isReference = true): boolean {
    const isNeeded = isReference || this.#estimate === undefined;
    this.look();
    if (isNeeded && Number.isSafeInteger(reading.nowMs)) this.#take(reading);
    this.look();
    const wasOwnWrong = this.#wasOwnWrong;
    this.#wasOwnWrong = this.isOwnWrong;
    return this.#wasOwnWrong !== wasOwnWrong;
  }

  /** Looks whether this clock was set back. To be called every second: without Redis, it is set back with the process's own clock. */
  look(): void {
    const nowMs = this.nowMs();
    if (nowMs < this.#seenMs - TOLERATED_MS) this.onSetBack();
    this.#seenMs = nowMs;
  }

  #take({ nowMs, sentMs, answeredMs }: ClockReading): void {
    const errorMs = (answeredMs - sentMs) / 2 + READING_ERROR_MS;
    const taken = { originMs: nowMs - (sentMs + answeredMs) / 2, errorMs, takenMs: answeredMs };
    const known = this.#estimate;
    if (known === undefined) {
      this.#estimate = taken;
      return;
    }
    const knownErrorMs = known.errorMs + (answeredMs - known.takenMs) * DRIFT;
    const isStepped = Math.abs(taken.originMs - known.originMs) > knownErrorMs + errorMs;
    if (isStepped || errorMs <= knownErrorMs) this.#estimate = taken;
  }
}

import { backoffMs } from '../../domain/backoff.ts';
import { pace } from '../../domain/pace.ts';
import type { UncountedReason } from '../store.ts';
import type { BreakerState } from '../store-observer.ts';

/** Consecutive failures that open the breaker: a single slow call, such as during a fork, is not an outage. */
const FAILURES_TO_OPEN = 3;

/**
 * Keeps a dead or hanging store from delaying requests: after three consecutive failures it refuses all calls, and probes the store
 * until it is back. Requests never wait for a probe.
 */
export class Breaker {
  readonly #makeProbe: () => Promise<UncountedReason | undefined>;
  readonly #changed: (state: BreakerState) => void;
  #state: BreakerState = 'closed';
  #failures = 0;
  #cause: UncountedReason = 'error';
  #probes = 0;
  #timer: NodeJS.Timeout | undefined;

  /** @param probe makes one call that no request depends on; resolves to the reason why it failed, or undefined if it succeeded */
  constructor(probe: () => Promise<UncountedReason | undefined>, changed: (state: BreakerState) => void) {
    this.#makeProbe = probe;
    this.#changed = changed;
  }

  /** Why calls are refused: the failure that opened the breaker, or the latest probe's failure. Undefined if it is closed. */
  get reason(): UncountedReason | undefined {
    return this.#state === 'closed' ? undefined : this.#cause;
  }

  succeeded(): void {
    this.#failures = 0;
  }

  failed(reason: UncountedReason): void {
    if (this.#state !== 'closed') return;
    this.#failures += 1;
    if (this.#failures < FAILURES_TO_OPEN) return;
    this.#cause = reason;
    this.#probes = 0;
    this.#open();
  }

  /** Probes at once if the breaker is open, for example after a reconnection. */
  probeSoon(): void {
    if (this.#state !== 'open') return;
    clearTimeout(this.#timer);
    this.#probes = 0;
    void this.#probe();
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#state = 'closed';
  }

  #open(): void {
    this.#become('open');
    this.#timer = setTimeout(() => void this.#probe(), backoffMs(pace.probes, ++this.#probes)).unref();
  }

  async #probe(): Promise<void> {
    this.#become('half-open');
    const failure = await this.#makeProbe();
    if (this.#state !== 'half-open') return;
    if (failure !== undefined) {
      this.#cause = failure;
      return this.#open();
    }
    this.#failures = 0;
    this.#become('closed');
  }

  #become(state: BreakerState): void {
    this.#state = state;
    this.#changed(state);
  }
}

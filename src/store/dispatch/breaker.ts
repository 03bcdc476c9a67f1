import type { BreakerState } from '../observer.ts';
import type { UncountedReason } from '../store.ts';

/** Calls in a row that may fail before the breaker opens: one slow call (a fork, a failover's last) is no outage. */
const FAILURES_TO_OPEN = 3;
/** Between probes: soon at first, for the many outages that last as long as a hiccup, then doubling. */
const FIRST_PROBE_MS = 50;
const LONGEST_PROBE_MS = 500;

export interface BreakerOptions {
  /** Makes one call that takes no request with it; tells why it failed, or undefined when it was answered well. */
  probe(): Promise<UncountedReason | undefined>;
  changed(state: BreakerState): void;
}

/**
 * Keeps a dead or hanging store from costing anything: after three failed calls in a row it refuses all, and probes
 * by itself until the store is back. No request ever waits for a probe.
 */
export class Breaker {
  readonly #options: BreakerOptions;
  #state: BreakerState = 'closed';
  #failures = 0;
  #cause: UncountedReason = 'error';
  #probeDelayMs = FIRST_PROBE_MS;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: BreakerOptions) {
    this.#options = options;
  }

  /** Why calls are refused now: what opened the breaker or failed the latest probe. Undefined while they are not. */
  get refusal(): UncountedReason | undefined {
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
    this.#probeDelayMs = FIRST_PROBE_MS;
    this.#open();
  }

  /** Something changed for the better, a new connection for one: an open breaker need not wait to look. */
  probeSoon(): void {
    if (this.#state !== 'open') return;
    clearTimeout(this.#timer);
    this.#probeDelayMs = FIRST_PROBE_MS;
    void this.#probe();
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#state = 'closed';
  }

  #open(): void {
    this.#become('open');
    // Replicas that lost the same store must not all probe it in the same instant.
    const delayMs = this.#probeDelayMs * (0.75 + Math.random() / 2);
    this.#timer = setTimeout(() => void this.#probe(), delayMs).unref();
    this.#probeDelayMs = Math.min(LONGEST_PROBE_MS, this.#probeDelayMs * 2);
  }

  async #probe(): Promise<void> {
    this.#become('half-open');
    const failure = await this.#options.probe();
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
    this.#options.changed(state);
  }
}

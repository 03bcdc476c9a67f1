/**
 * How many requests an upstream can take at once, by its latency. The limit follows the gradient between the latency of an upstream without
 * a queue and the present one, as in Netflix's Gradient2 and Envoy's adaptive concurrency. Nothing here has a timer: time passes with
 * responses.
 */

/** Where a limit begins. While the latency stays, it grows by a quarter and more with each window. */
const FIRST_LIMIT = 32;
/** Fewer requests give too few samples. */
const LEAST_LIMIT = 3;

/** A latency up to this multiple of the one without a queue is no queue. */
const TOLERANCE = 1.25;
const LEAST_GRADIENT = 0.5;

/** A window has this many responses in a tenth of a second or more, or a few in a second. */
const MANY_SAMPLES = 50;
const FEW_SAMPLES = 10;
const SHORT_MS = 100;
const LONG_MS = 1_000;

/** After so many windows, the latency without a queue is measured again. */
const PROBE_WINDOWS = 50;
/** The same, at the beginning and while the last two measurements differ by more than the tolerance: there may have been a queue. */
const SOON_WINDOWS = 3;
const SAME_RATIO = 1.2;
/** Of the requests that the upstream works on, as a probe: enough to keep it nearly busy, and few enough to leave no queue. */
const PROBED_PART = 0.75;

/** The responses to requests that were sent since the last change of the limit. */
class Window {
  #fromMs: number;
  #logs = 0;
  #mostPresent = 0;
  #count = 0;

  constructor(fromMs: number) {
    this.#fromMs = fromMs;
  }

  /** @returns whether it is complete */
  add(sentMs: number, nowMs: number, present: number): boolean {
    if (sentMs < this.#fromMs) return false;
    this.#logs += Math.log(Math.max(nowMs - sentMs, 0.01));
    this.#mostPresent = Math.max(this.#mostPresent, present);
    this.#count++;
    const lengthMs = nowMs - this.#fromMs;
    if (this.#count >= MANY_SAMPLES) return lengthMs >= SHORT_MS;
    return this.#count >= FEW_SAMPLES && lengthMs >= LONG_MS;
  }

  /** The geometric mean: a few slow operations among fast ones hardly change it. */
  get latencyMs(): number {
    return Math.exp(this.#logs / this.#count);
  }

  get mostPresent(): number {
    return this.#mostPresent;
  }
}

export class AdaptiveLimit {
  readonly #most: number;
  readonly #least: number;
  #limit: number;
  /** Undefined until the first window has ended. */
  #unqueuedMs: number | undefined;
  /** The limit when that was measured. */
  #limitThen: number;
  /** The limit that a probe has lowered; undefined while there is none. */
  #limitBefore: number | undefined;
  /** Until the next probe. */
  #windowsLeft = SOON_WINDOWS;
  #window = new Window(0);

  /** @param most the limit is never higher */
  constructor(most: number) {
    this.#most = most;
    this.#least = Math.min(LEAST_LIMIT, most);
    this.#limit = Math.min(FIRST_LIMIT, most);
    this.#limitThen = this.#limit;
  }

  get limit(): number {
    return Math.floor(this.#limit);
  }

  /**
   * Takes a response, or a time-out.
   *
   * @param present how many requests were at the upstream, this one included
   * @returns whether the limit may have changed
   */
  note(sentMs: number, nowMs: number, present: number): boolean {
    if (!this.#window.add(sentMs, nowMs, present)) return false;
    const { latencyMs, mostPresent } = this.#window;
    this.#window = new Window(nowMs);
    if (this.#limitBefore !== undefined) this.#endProbe(latencyMs, this.#limitBefore);
    else this.#follow(latencyMs, mostPresent);
    return true;
  }

  #follow(latencyMs: number, mostPresent: number): void {
    const before = this.#unqueuedMs ?? latencyMs;
    const unqueuedMs = latencyMs < before ? (latencyMs + before) / 2 : before;
    this.#unqueuedMs = unqueuedMs;
    const ratio = unqueuedMs / latencyMs;
    const gradient = Math.min(TOLERANCE, Math.max(LEAST_GRADIENT, TOLERANCE * ratio));
    const next = gradient * this.#limit + Math.sqrt(this.#limit);
    // Unused, a higher limit would be untested.
    if (next < this.#limit || mostPresent >= this.#limit / 2) this.#limit = this.#within(next);
    this.#windowsLeft--;
    // Where a lower limit does not lower the latency, the upstream has become slower for another reason.
    if (this.#windowsLeft <= 0 || this.#limit < this.#limitThen / 2) this.#beginProbe(ratio);
  }

  #beginProbe(ratio: number): void {
    this.#limitBefore = this.#limit;
    this.#limit = this.#within(this.#limit * PROBED_PART * Math.min(1, ratio));
  }

  #endProbe(latencyMs: number, limitBefore: number): void {
    const changed = latencyMs / (this.#unqueuedMs ?? latencyMs);
    this.#windowsLeft = Math.max(changed, 1 / changed) > SAME_RATIO ? SOON_WINDOWS : PROBE_WINDOWS;
    this.#unqueuedMs = latencyMs;
    this.#limit = limitBefore;
    this.#limitThen = limitBefore;
    this.#limitBefore = undefined;
  }

  #within(limit: number): number {
    return Math.max(this.#least, Math.min(this.#most, limit));
  }
}

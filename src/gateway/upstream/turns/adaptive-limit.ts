/**
 * How many requests an upstream can take at once, by its latency. The limit follows the gradient between the latency of an upstream without
 * a queue and the present one, as in Netflix's Gradient2 and Envoy's adaptive concurrency. Nothing here has a timer: time passes with
 * responses.
 */

/** Where a limit begins. */
const FIRST_LIMIT = 32;
/** Fewer requests give too few samples. */
const LEAST_LIMIT = 3;

/**
 * How far a latency may lie above the one without a queue before that counts as a queue. The steadier the latencies are, the less is
 * tolerated: these multiples of the standard error of a window's mean and of the usual change between two windows, within these bounds.
 */
const LEAST_SLACK = 0.03;
const MOST_SLACK = 0.25;
const SLACK_ERRORS = 4;
const SLACK_CHANGES = 1.5;
/** The weight of the latest change in the usual one, which begins as it would in a restless upstream. */
const CHANGE_WEIGHT = 0.1;
const FIRST_CHANGE = 0.1;
const LEAST_GRADIENT = 0.5;

/** By which part the limit grows after a queue. Each window without a queue doubles it, up to the most. */
const LEAST_GROWTH = 0.02;
const MOST_GROWTH = 0.25;

/** A window has this many responses in a tenth of a second or more, or a few in a second. */
const MANY_SAMPLES = 50;
const FEW_SAMPLES = 10;
const SHORT_MS = 100;
const LONG_MS = 1_000;

/** After so many windows, the latency without a queue is measured again. */
const PROBE_WINDOWS = 50;
/** The same, at the beginning and while the last two measurements differ by more than the slack: there may have been a queue. */
const SOON_WINDOWS = 3;
/** And at once when the limit has fallen to this part of what it was then. */
const PROBED_AT = 0.8;
/** Of the requests that the upstream works on, as a probe: enough to keep it nearly busy, and few enough to leave no queue. */
const PROBED_PART = 0.75;

/** The responses to requests that were sent since the last change of the limit. */
class Window {
  #fromMs: number;
  #logs = 0;
  #squares = 0;
  #mostPresent = 0;
  #count = 0;

  constructor(fromMs: number) {
    this.#fromMs = fromMs;
  }

  /** @returns whether it is complete */
  add(sentMs: number, nowMs: number, present: number): boolean {
    if (sentMs < this.#fromMs) return false;
    const log = Math.log(Math.max(nowMs - sentMs, 0.01));
    this.#logs += log;
    this.#squares += log * log;
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

  /** The standard error of the mean, as a part of it. */
  get error(): number {
    const mean = this.#logs / this.#count;
    const variance = Math.max(0, this.#squares / this.#count - mean * mean);
    return Math.sqrt(variance / this.#count);
  }

  get mostPresent(): number {
    return this.#mostPresent;
  }
}

export class AdaptiveLimit {
  readonly #most: number;
  readonly #least: number;
  #limit: number;
  #growth = MOST_GROWTH;
  /** Of the latency from one window to the next, as a part of it. */
  #usualChange = FIRST_CHANGE;
  /** Undefined where the limit was lowered on purpose. */
  #lastMs: number | undefined;
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
    const window = this.#window;
    if (!window.add(sentMs, nowMs, present)) return false;
    this.#window = new Window(nowMs);
    if (this.#limitBefore !== undefined) this.#endProbe(window, this.#limitBefore);
    else this.#follow(window);
    return true;
  }

  #slackOf({ error }: Window): number {
    const slack = Math.max(LEAST_SLACK, SLACK_ERRORS * error, SLACK_CHANGES * this.#usualChange);
    return Math.min(MOST_SLACK, slack);
  }

  #noteChange(latencyMs: number): void {
    const change = Math.abs(Math.log(latencyMs / (this.#lastMs ?? latencyMs)));
    if (this.#lastMs !== undefined) this.#usualChange += CHANGE_WEIGHT * (change - this.#usualChange);
    this.#lastMs = latencyMs;
  }

  #follow(window: Window): void {
    const { latencyMs, mostPresent } = window;
    this.#noteChange(latencyMs);
    const slack = this.#slackOf(window);
    const before = this.#unqueuedMs ?? latencyMs;
    const unqueuedMs = latencyMs < before ? (latencyMs + before) / 2 : before;
    this.#unqueuedMs = unqueuedMs;
    const ratio = unqueuedMs / latencyMs;
    const next = this.#limit * this.#gradient(ratio, slack) + Math.sqrt(this.#limit) * (slack / MOST_SLACK);
    // Unused, a higher limit would be untested.
    if (next < this.#limit || mostPresent >= this.#limit / 2) this.#limit = this.#within(next);
    this.#windowsLeft--;
    // Where a lower limit does not lower the latency, the upstream has become slower for another reason.
    if (this.#windowsLeft <= 0 || this.#limit < this.#limitThen * PROBED_AT) this.#beginProbe(ratio);
  }

  /** @param ratio of the latency without a queue to the present one */
  #gradient(ratio: number, slack: number): number {
    const tolerated = ratio * (1 + slack);
    if (tolerated < 1) {
      this.#growth = LEAST_GROWTH;
      return Math.max(LEAST_GRADIENT, tolerated);
    }
    const growth = this.#growth;
    this.#growth = Math.min(MOST_GROWTH, 2 * growth);
    return Math.max(Math.min(tolerated, 1 + slack), ratio > 1 - slack / 2 ? 1 + growth : 1);
  }

  #beginProbe(ratio: number): void {
    this.#limitBefore = this.#limit;
    this.#limit = this.#within(this.#limit * PROBED_PART * Math.min(1, ratio));
  }

  #endProbe(window: Window, limitBefore: number): void {
    const { latencyMs } = window;
    const slack = this.#slackOf(window);
    this.#lastMs = undefined;
    const changed = latencyMs / (this.#unqueuedMs ?? latencyMs);
    this.#windowsLeft = Math.max(changed, 1 / changed) > 1 + slack ? SOON_WINDOWS : PROBE_WINDOWS;
    this.#unqueuedMs = latencyMs;
    this.#limit = limitBefore;
    this.#limitThen = limitBefore;
    this.#limitBefore = undefined;
  }

  #within(limit: number): number {
    return Math.max(this.#least, Math.min(this.#most, limit));
  }
}

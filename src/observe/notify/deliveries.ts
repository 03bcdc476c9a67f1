import type { Logger } from 'pino';
import { jittered } from '../../domain/backoff.ts';
import { quietly } from '../log/process-output.ts';
import { MOST_WAITING } from './notifications.ts';
import { type Endpoint, post, type WebhookMessage } from './webhook.ts';

/** Waits between the attempts of a message: after the last of them it is given up. */
const RETRY_MS: readonly number[] = [1_000, 5_000, 30_000, 120_000, 300_000];

/** Calls at a time. */
const MOST_AT_ONCE = 4;

/** Of these, calls that repeat one that failed, so that messages that fail again and again do not delay others. */
const MOST_REPEATS_AT_ONCE = 2;

/** How long a gateway that stops waits for what has not been tried yet. */
const CLOSE_MS = 3_000;

export type NotificationOutcome = 'delivered' | 'retried' | 'failed' | 'dropped' | 'unclaimed';

export interface NotificationObserver {
  notified(outcome: NotificationOutcome, count?: number): void;
  /** Shows how many notifications wait for an attempt. */
  showWaiting(count: () => number): void;
}

interface Delivery {
  readonly message: WebhookMessage;
  failures: number;
}

/**
 * Sends messages to a webhook, a few at a time, and tries again what failed. First attempts go before repeated ones. What it
 * holds is bounded: a new message displaces one that has failed.
 */
export class Deliveries {
  readonly #endpoint: Endpoint;
  readonly #observer: NotificationObserver;
  readonly #log: Logger;
  readonly #retryMs: readonly number[];
  readonly #ended = new AbortController();
  readonly #isNewProblem = quietly(() => performance.now());
  /** Due now, for the first time. */
  readonly #queue: Delivery[] = [];
  /** Due now, after a failure. */
  readonly #repeats: Delivery[] = [];
  /** Due when their timer ends. */
  readonly #later = new Map<Delivery, NodeJS.Timeout>();
  #underWay = 0;
  #repeatsUnderWay = 0;
  #isClosing = false;
  #onIdle: () => void = () => undefined;

  /** @param retryMs for tests */
  constructor(endpoint: Endpoint, observer: NotificationObserver, log: Logger, retryMs = RETRY_MS) {
    this.#endpoint = endpoint;
    this.#observer = observer;
    this.#log = log;
    this.#retryMs = retryMs;
    observer.showWaiting(() => this.waiting);
  }

  get waiting(): number {
    return this.#queue.length + this.#repeats.length + this.#later.size + this.#underWay;
  }

  add(message: WebhookMessage): void {
    const isFull = this.waiting >= MOST_WAITING;
    if (isFull || this.#isClosing) this.#observer.notified('dropped');
    if (this.#isClosing || (isFull && !this.#dropFailed())) return;
    this.#queue.push({ message, failures: 0 });
    void this.#work();
  }

  /** Finishes what is due, for a few seconds at most; what waits for another attempt is dropped. */
  async close(): Promise<void> {
    this.#isClosing = true;
    for (const timer of this.#later.values()) clearTimeout(timer);
    const isDone = new Promise<void>((resolve) => {
      this.#onIdle = resolve;
      setTimeout(resolve, CLOSE_MS).unref();
    });
    if (this.#underWay > 0) await isDone;
    this.#ended.abort();
    const dropped = this.waiting;
    this.#queue.length = 0;
    this.#repeats.length = 0;
    this.#later.clear();
    if (dropped === 0) return;
    this.#observer.notified('dropped', dropped);
    this.#log.warn({ dropped }, 'notifications were not delivered before the gateway stopped');
  }

  /** Removes the waiting message that has failed most often. Returns false if none has failed. */
  #dropFailed(): boolean {
    let most: Delivery | undefined;
    for (const one of [...this.#later.keys(), ...this.#repeats])
      if (one.failures > (most?.failures ?? 0)) most = one;
    if (most === undefined) return false;
    clearTimeout(this.#later.get(most));
    if (!this.#later.delete(most)) this.#repeats.splice(this.#repeats.indexOf(most), 1);
    return true;
  }

  async #work(): Promise<void> {
    if (this.#underWay >= MOST_AT_ONCE) return;
    this.#underWay += 1;
    for (let next = this.#next(); next !== undefined; next = this.#next()) {
      const isRepeat = next.failures > 0;
      if (isRepeat) this.#repeatsUnderWay += 1;
      await this.#try(next);
      if (isRepeat) this.#repeatsUnderWay -= 1;
    }
    this.#underWay -= 1;
    if (this.#underWay === 0) this.#onIdle();
  }

  #next(): Delivery | undefined {
    if (this.#queue.length > 0) return this.#queue.shift();
    return this.#repeatsUnderWay < MOST_REPEATS_AT_ONCE ? this.#repeats.shift() : undefined;
  }

  async #try(delivery: Delivery): Promise<void> {
    const { signal } = this.#ended;
    try {
      await post(this.#endpoint, delivery.message, signal);
      this.#observer.notified('delivered');
    } catch (error) {
      if (!signal.aborted) this.#failed(delivery, error instanceof Error ? error.message : String(error));
    }
  }

  #failed(delivery: Delivery, problem: string): void {
    if (this.#isNewProblem(problem)) this.#log.warn({ problem }, 'a notification was not delivered');
    const waitMs = this.#retryMs[delivery.failures];
    delivery.failures += 1;
    if (waitMs === undefined || this.#isClosing) {
      this.#observer.notified('failed');
      return;
    }
    this.#observer.notified('retried');
    const timer = setTimeout(() => {
      this.#later.delete(delivery);
      this.#repeats.push(delivery);
      void this.#work();
    }, jittered(waitMs)).unref();
    this.#later.set(delivery, timer);
  }
}

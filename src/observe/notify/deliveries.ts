import type { Logger } from 'pino';
import { jittered } from '../../domain/backoff.ts';
import { pace } from '../../domain/pace.ts';
import { errorText } from '../../domain/shown.ts';
import type { Outbox, ReceiverHold } from '../../store/outbox.ts';
import type { Changes } from '../log/noticed-changes.ts';
import { quietly } from '../log/process-output.ts';
import {
  digestOf,
  type Endpoint,
  messageOf,
  newMessage,
  post,
  type WebhookAnswer,
  type WebhookMessage,
} from './webhook.ts';

/** Calls at a time. */
const MOST_AT_ONCE = 4;

/** Of these, calls that repeat one that failed, so that messages that fail again and again do not delay others. */
const MOST_REPEATS_AT_ONCE = 2;

/** How long a gateway that stops waits for calls that are under way. */
const CLOSE_MS = 3_000;

/** Bounds of the random factor of a wait, which is never shorter than it has to be. */
const LATER = [1, 1.25] as const;

export type NotificationOutcome = 'delivered' | 'retried' | 'failed' | 'dropped' | 'gone' | 'unclaimed';

export interface NotificationObserver {
  notified(outcome: NotificationOutcome, count?: number): void;
  /** Shows how many notifications wait for an attempt, and whether the webhook has answered 410. */
  showNotifications(waiting: () => number | undefined, isGone: () => boolean): void;
}

interface DeliveryParts {
  readonly outbox: Outbox;
  readonly observer: NotificationObserver;
  readonly log: Logger;
  readonly changes: Changes;
  /** Unix time by the clock that all replicas share. */
  nowMs(): number;
}

/**
 * Sends messages to a webhook, a few at a time, and tries for a day what failed, as Standard Webhooks recommends. Messages are in the outbox
 * until they are delivered, so a replica takes over what another one has not finished.
 */
export class Deliveries {
  readonly #endpoint: Endpoint;
  readonly #parts: DeliveryParts;
  readonly #ended = new AbortController();
  readonly #isNewProblem = quietly(() => performance.now());
  readonly #underWay = new Set<Promise<void>>();
  #repeats = 0;
  /** Calls that begin once their message is kept. */
  #reserved = 0;
  #hold: ReceiverHold | undefined;
  #isLooking = false;
  #isClosing = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(endpoint: Endpoint, parts: DeliveryParts) {
    this.#endpoint = endpoint;
    this.#parts = parts;
    parts.observer.showNotifications(
      () => parts.outbox.waiting,
      () => this.#hold === 'gone',
    );
    this.#lookLater();
  }

  /** Resolves once the message is kept. Rejects if the outbox cannot be asked, or the secret cannot be read. */
  async add(madeMs: number, event: { readonly type: string; readonly data: object }): Promise<void> {
    const { outbox, observer } = this.#parts;
    const message = newMessage(madeMs, event);
    // Fails where the file of the secret cannot be read, so it comes before a call is reserved.
    const receiver = digestOf(this.#endpoint);
    const isFree = this.#free > 0 && !this.#isClosing;
    if (isFree) this.#reserved += 1;
    const adding = outbox.add(receiver, message.payload, isFree).finally(() => {
      if (isFree) this.#reserved -= 1;
    });
    const { state, dropped } = await adding;
    if (dropped > 0) this.#dropped(dropped, 'too many notifications wait');
    if (state === 'gone') observer.notified('gone');
    if (state === 'taken') this.#start(message, false);
  }

  /** Finishes calls that are under way, for a few seconds at most. What is in Redis is left to other replicas. */
  async close(): Promise<void> {
    const { outbox, log } = this.#parts;
    this.#isClosing = true;
    clearTimeout(this.#timer);
    const timer = setTimeout(() => this.#ended.abort(), CLOSE_MS);
    await Promise.all(this.#underWay);
    clearTimeout(timer);
    const { waiting = 0 } = outbox;
    outbox.close();
    if (waiting > 0) log.warn({ waiting }, 'notifications waited when the gateway stopped');
  }

  /** Calls that may begin. */
  get #free(): number {
    return Math.max(0, MOST_AT_ONCE - this.#underWay.size - this.#reserved);
  }

  #lookLater(waitMs: number = pace.outboxLookMs): void {
    if (this.#isClosing) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#look(), jittered(waitMs)).unref();
  }

  /** Takes messages that are due, as many as can be delivered now. */
  async #look(): Promise<void> {
    if (this.#isLooking || this.#isClosing) return;
    this.#isLooking = true;
    const mostRepeated = Math.max(0, MOST_REPEATS_AT_ONCE - this.#repeats);
    try {
      const taken = await this.#parts.outbox.take(digestOf(this.#endpoint), this.#free, mostRepeated);
      this.#noteHold(taken.hold);
      for (const payload of taken.first) this.#startPayload(payload, false);
      for (const payload of taken.repeated) this.#startPayload(payload, true);
    } catch (error) {
      this.#note(error, 'notifications that wait cannot be read');
    }
    this.#isLooking = false;
    this.#lookLater();
  }

  #noteHold(hold: ReceiverHold | undefined): void {
    if (hold === 'gone' && this.#hold !== 'gone')
      this.#parts.log.error('the webhook answered 410: nothing is sent until its url or its secret changes');
    this.#hold = hold;
  }

  #startPayload(payload: string, isRepeat: boolean): void {
    const message = messageOf(payload);
    if (message !== undefined) {
      this.#start(message, isRepeat);
      return;
    }
    this.#dropped(1, 'a notification in Redis cannot be read');
    void this.#parts.outbox.remove(payload).catch(() => undefined);
  }

  #start(message: WebhookMessage, isRepeat: boolean): void {
    if (isRepeat) this.#repeats += 1;
    const delivery = this.#deliver(message).finally(() => {
      if (isRepeat) this.#repeats -= 1;
      this.#underWay.delete(delivery);
      // More may be due.
      if (this.#underWay.size === MOST_AT_ONCE - 1 || isRepeat) this.#lookLater(0);
    });
    this.#underWay.add(delivery);
  }

  /** If the outbox cannot be asked afterwards, the message is delivered again, with the same id. */
  async #deliver(message: WebhookMessage): Promise<void> {
    const { outbox, nowMs } = this.#parts;
    const startedMs = nowMs();
    const { signal } = this.#ended;
    try {
      const answer = await post(this.#endpoint, message, signal).catch((error: unknown) => {
        this.#note(error);
        return undefined;
      });
      if (answer === undefined && signal.aborted) await outbox.postpone(message.payload, 0);
      else await this.#answered(message, answer, startedMs);
    } catch (error) {
      this.#note(error, 'the outcome of a notification was not recorded');
    }
  }

  async #answered(
    message: WebhookMessage,
    answer: WebhookAnswer | undefined,
    startedMs: number,
  ): Promise<void> {
    const { outbox, observer } = this.#parts;
    const { status = 0, retryAfterMs } = answer ?? {};
    if (status >= 200 && status < 300) {
      observer.notified('delivered');
      await outbox.remove(message.payload);
      return;
    }
    if (answer !== undefined) this.#note(new Error(`the webhook answered ${status}`));
    if (status === 410) return this.#end();
    const pauseMs = retryAfterMs ?? (status === 429 ? pace.webhookPauseMs : 0);
    const waitMs = waitAfter(startedMs - message.madeMs);
    observer.notified(waitMs === undefined ? 'failed' : 'retried');
    if (waitMs === undefined) await outbox.remove(message.payload);
    else await outbox.postpone(message.payload, jittered(Math.max(waitMs, pauseMs), LATER));
    if (pauseMs > 0) await outbox.pause(digestOf(this.#endpoint), pauseMs);
  }

  /** Standard Webhooks: 410 disables the endpoint. Replicas that have another one already deliver what waits. */
  async #end(): Promise<void> {
    const { outbox, observer, changes } = this.#parts;
    await outbox.end(digestOf(this.#endpoint));
    observer.notified('gone');
    this.#lookLater(0);
    changes.info({ about: 'the webhook answered 410' }, 'notifications.ended');
  }

  #dropped(count: number, problem: string): void {
    this.#parts.observer.notified('dropped', count);
    this.#note(new Error(problem), 'notifications were dropped');
  }

  #note(error: unknown, message = 'a notification was not delivered'): void {
    const problem = errorText(error);
    if (this.#isNewProblem(problem)) this.#parts.log.warn({ problem }, message);
  }
}

/**
 * The wait after an attempt that failed.
 *
 * @param ageMs age of the message when the attempt began
 * @returns undefined after the last attempt
 */
function waitAfter(ageMs: number): number | undefined {
  let dueMs = 0;
  return pace.webhookWaitsMs.find((waitMs) => {
    dueMs += waitMs;
    return ageMs < dueMs;
  });
}

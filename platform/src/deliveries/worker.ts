import type { Database } from '../database/schema.ts';
import { type Polling, startPolling } from '../jobs/polling.ts';
import { waitBriefly } from '../program/grace.ts';
import type { DeliverySettings } from '../settings.ts';
import { type Attempt, logAttempts } from './attempts.ts';
import { recordHealth } from './endpoint-health.ts';
import { postWebhook } from './post.ts';
import { type ClaimedDelivery, claimDeliveries, findWaiting } from './queue.ts';
import { shareSlots } from './shares.ts';
import { AttemptsUnderWay } from './under-way.ts';

/** Longest wait for a due retry, or for a delivery that another process queued. */
const POLL_MS = 500;

/** How long a finished attempt waits for others, so that they are logged and replaced together. */
const GATHER_MS = 10;
/** Finished attempts are logged at once if there are this many, or as many as are still under way. */
const BATCH = 64;

/** A lease lasts this many time-outs. A process that has not logged its attempt by then has died. */
const LEASE_TIMEOUTS = 2;

/**
 * Sends the deliveries of the queue, up to `concurrency` at once. No subscription can take the slots of the others.
 * `stop` waits briefly for attempts under way.
 */
export function startDeliveries(
  db: Database,
  settings: DeliverySettings,
  now: () => Date,
  onError: (error: Error) => void,
): Polling {
  return new DeliveryWorker(db, settings, now, onError);
}

class DeliveryWorker implements Polling {
  readonly #db: Database;
  readonly #settings: DeliverySettings;
  readonly #now: () => Date;
  readonly #onError: (error: Error) => void;
  readonly #underWay = new AttemptsUnderWay();
  readonly #polling: Polling;
  /** Logged together, before the queue is read again. */
  #finished: Attempt[] = [];
  #gathering: NodeJS.Timeout | undefined;

  constructor(db: Database, settings: DeliverySettings, now: () => Date, onError: (error: Error) => void) {
    this.#db = db;
    this.#settings = settings;
    this.#now = now;
    this.#onError = onError;
    this.#polling = startPolling(POLL_MS, () => this.#look(), onError);
  }

  wake(): void {
    this.#polling.wake();
  }

  async stop(): Promise<void> {
    await waitBriefly(this.#polling.stop().then(() => this.#underWay.ended()));
    await waitBriefly(this.#log());
  }

  /** Always resolves with false: no further slot may be taken, or nothing is due, until an attempt ends. */
  async #look(): Promise<false> {
    clearTimeout(this.#gathering);
    this.#gathering = undefined;
    await this.#log();
    for (const delivery of await this.#claim()) {
      this.#underWay.add(delivery, this.#attempt(delivery), () => this.#wakeSoon());
    }
    return false;
  }

  /** Logs the attempts that have finished. If that fails, their deliveries are sent again when their lease ends. */
  async #log(): Promise<void> {
    const attempts = this.#finished;
    this.#finished = [];
    if (attempts.length === 0) return;
    try {
      await logAttempts(this.#db, this.#settings, attempts, this.#now());
      await recordHealth(this.#db, this.#settings, attempts, this.#now());
    } catch (error) {
      this.#onError(error as Error);
    }
  }

  /** Claims as many deliveries as each subscription may start. */
  async #claim(): Promise<ClaimedDelivery[]> {
    const { concurrency, timeoutMs } = this.#settings;
    if (this.#underWay.total >= concurrency) return [];
    const waiting = await findWaiting(this.#db, this.#now());
    this.#underWay.keepWindows(waiting);
    const slots = shareSlots(waiting, this.#underWay, concurrency);
    if (slots.size === 0) return [];
    const leaseEnd = new Date(this.#now().getTime() + LEASE_TIMEOUTS * timeoutMs);
    return claimDeliveries(this.#db, slots, this.#now(), leaseEnd);
  }

  /** Sends a delivery. Resolves with whether the endpoint took it, and never rejects. */
  async #attempt(delivery: ClaimedDelivery): Promise<boolean> {
    const { timeoutMs, allowPrivate } = this.#settings;
    const attemptedAt = this.#now();
    const { url, secrets, eventId: id } = delivery;
    try {
      const message = { url, secrets, id, payload: JSON.stringify(delivery.payload) };
      const outcome = await postWebhook(message, timeoutMs, allowPrivate);
      this.#finished.push({ delivery, attemptedAt, outcome });
      return outcome.isDelivered;
    } catch (error) {
      this.#onError(error as Error);
      return false;
    }
  }

  /** Looks again once enough attempts have finished, or a moment later. */
  #wakeSoon(): void {
    if (this.#finished.length >= Math.min(BATCH, this.#underWay.total)) this.wake();
    else this.#gathering ??= setTimeout(() => this.wake(), GATHER_MS).unref();
  }
}

import { setTimeout as sleep } from 'node:timers/promises';
import type { Database } from '../database/schema.ts';
import { type Polling, startPolling } from '../jobs/polling.ts';
import { GRACE_MS } from '../jobs/runner.ts';
import type { DeliverySettings } from '../settings.ts';
import { type Attempt, logAttempts } from './attempts.ts';
import { recordHealth } from './endpoint-health.ts';
import { postWebhook } from './post.ts';
import { type ClaimedDelivery, claimDeliveries, findWaiting } from './queue.ts';
import { shareSlots } from './shares.ts';

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
  const underWay = new Set<Promise<void>>();
  const held = countByName();
  // Logged together, before the queue is read again.
  let ended: Attempt[] = [];

  const send = async (delivery: ClaimedDelivery) => {
    const attemptedAt = now();
    const { url, secrets, eventId: id } = delivery;
    const message = { url, secrets, id, payload: JSON.stringify(delivery.payload) };
    const outcome = await postWebhook(message, settings.timeoutMs, settings.allowPrivate);
    ended.push({ delivery, attemptedAt, outcome });
  };
  let soon: NodeJS.Timeout | undefined;
  const wakeSoon = () => {
    if (ended.length >= Math.min(BATCH, underWay.size)) polling.wake();
    else soon ??= setTimeout(() => polling.wake(), GATHER_MS).unref();
  };
  const start = (delivery: ClaimedDelivery) => {
    const holders = [delivery.subscriptionId, delivery.owner];
    for (const id of holders) held.add(id, 1);
    const sending: Promise<void> = send(delivery)
      .catch(onError)
      .finally(() => {
        underWay.delete(sending);
        for (const id of holders) held.add(id, -1);
        wakeSoon();
      });
    underWay.add(sending);
  };
  const log = async () => {
    const attempts = ended;
    ended = [];
    if (attempts.length === 0) return;
    try {
      await logAttempts(db, settings, attempts, now());
      await recordHealth(db, settings, attempts, now());
    } catch (error) {
      // The attempts are not logged, so the deliveries are sent again when their lease ends.
      onError(error as Error);
    }
  };
  const look = async () => {
    clearTimeout(soon);
    soon = undefined;
    await log();
    if (underWay.size >= settings.concurrency) return false;
    const waiting = await findWaiting(db, now());
    const slots = shareSlots(waiting, { total: underWay.size, of: held.of }, settings.concurrency);
    if (slots.size === 0) return false;
    const leaseEnd = new Date(now().getTime() + LEASE_TIMEOUTS * settings.timeoutMs);
    const claimed = await claimDeliveries(db, slots, now(), leaseEnd);
    claimed.forEach(start);
    // Either no further slot may be taken or nothing is due, so there is no more work until an attempt ends.
    return false;
  };
  const polling = startPolling(POLL_MS, look, onError);
  return {
    wake: polling.wake,
    async stop() {
      await polling.stop();
      await Promise.race([Promise.all(underWay), sleep(GRACE_MS, undefined, { ref: false })]);
      await log();
    },
  };
}

function countByName() {
  const counts = new Map<string, number>();
  const of = (name: string) => counts.get(name) ?? 0;
  const add = (name: string, difference: number) => {
    const next = of(name) + difference;
    if (next > 0) counts.set(name, next);
    else counts.delete(name);
  };
  return { of, add };
}

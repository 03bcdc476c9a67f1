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

/** How long a due retry, or what another process has queued, waits at most. */
const POLL_MS = 500;

/** An attempt that has ended waits so long for others, to be logged and replaced together with them. */
const GATHER_MS = 10;
/** So many do not wait, and neither do as many as are still under way. */
const BATCH = 64;

/** A lease ends after two time-outs: a process that has not logged its attempt by then is dead. */
const LEASE_TIMEOUTS = 2;

/**
 * Sends what is in the delivery queue, `concurrency` deliveries at once, none of whose subscriptions can take the slots
 * of the others. `stop` waits a moment for the attempts under way.
 */
export function startDeliveries(
  db: Database,
  settings: DeliverySettings,
  now: () => Date,
  onError: (error: Error) => void,
): Polling {
  const underWay = new Set<Promise<void>>();
  const held = countByName();
  // Logged together, before the next look at the queue.
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
      // Not logged: sent again when their lease ends.
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
    // Every slot that anyone may have is taken, or nothing is due: there is no more until an attempt ends.
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

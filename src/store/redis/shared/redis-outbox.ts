import { pace } from '../../../domain/pace.ts';
import { type Added, MOST_MESSAGES, type Outbox, type Taken } from '../../outbox.ts';
import type { SharedLink } from './shared-link.ts';

const DAY_MS = 86_400_000;

/** Longer than any message is tried. */
const LIFE_MS = 3 * DAY_MS;

/** How long it is known that a receiver wants nothing, after a replica last asked. */
const GONE_MS = 30 * DAY_MS;

/**
 * Opens the outbox of all replicas with this key.
 *
 * @param key has a hash tag, so that its keys share a slot of a Cluster
 */
export function openOutbox(shared: SharedLink, key: string): Outbox {
  const link = shared.use();
  const { client } = link;
  const holdKeyOf = (receiver: string) => `${key}:hold:${receiver}`;
  let waiting: number | undefined;
  return {
    get waiting() {
      return waiting;
    },
    async add(receiver, message, isTaken) {
      const leaseMs = isTaken ? pace.outboxLeaseMs : 0;
      const reply = await client.addMessage(
        key,
        holdKeyOf(receiver),
        receiver,
        message,
        leaseMs,
        MOST_MESSAGES,
        LIFE_MS,
      );
      const [state, dropped] = reply as readonly [Added['state'], number];
      return { state, dropped };
    },
    async take(receiver, most, mostRepeated) {
      const lives = [pace.outboxLeaseMs, LIFE_MS, GONE_MS] as const;
      const taking = client.takeMessages(key, holdKeyOf(receiver), receiver, most, mostRepeated, ...lives);
      const reply = await taking.catch((error: unknown) => {
        waiting = undefined;
        // Without a connection, ioredis's own error speaks of a stream and an option.
        const problem = link.problem();
        throw problem === undefined ? error : new Error(problem, { cause: error });
      });
      const [hold, count, first, ...messages] = reply as readonly [string, number, number, ...string[]];
      waiting = count < 0 ? undefined : count;
      const held = { hold: (hold || undefined) as Taken['hold'] };
      return { ...held, first: messages.slice(0, first), repeated: messages.slice(first) };
    },
    async postpone(message, waitMs) {
      const [seconds, micros] = await client.time();
      const nowMs = Number(seconds) * 1_000 + Math.floor(Number(micros) / 1_000);
      // XX: another replica may have delivered it.
      await client.zadd(key, 'XX', nowMs + waitMs, message);
    },
    async remove(message) {
      await client.zrem(key, message);
    },
    async pause(receiver, lifeMs) {
      await client.set(holdKeyOf(receiver), `busy ${receiver}`, 'PX', lifeMs);
    },
    async end(receiver) {
      await client.set(holdKeyOf(receiver), `gone ${receiver}`, 'PX', GONE_MS);
    },
    close: () => link.close(),
  };
}

import type { Logger } from 'pino';
import { applyLive, type LimitPublisher } from '../admin/limits/live.ts';
import { SharedClock } from '../shared/clock.ts';
import { follow } from '../shared/follow.ts';
import type { SharedObserver } from '../shared/ignored.ts';
import { LIVE_LIMITS, type LiveLimit } from '../shared/live-limits.ts';
import type { Buckets } from '../stages/buckets.ts';
import type { SharedStore } from '../store/shared-store.ts';

interface RunningLiveLimits {
  /** Undefined where no other replica shares the store. */
  readonly publisher: LimitPublisher | undefined;
  /** Resolves once the live limits that were set before are in force, or after a second without Redis. */
  readonly ready: Promise<void>;
  close(): void;
}

interface Reported {
  readonly clock: SharedClock;
  readonly observer: SharedObserver;
  readonly log: Logger;
}

/** Follows the live limits of all replicas, and with them the clock of Redis. */
export function runLiveLimits(
  shared: SharedStore | undefined,
  buckets: Buckets,
  { clock, observer, log }: Reported,
): RunningLiveLimits {
  if (shared === undefined) return { publisher: undefined, ready: Promise.resolve(), close() {} };
  observer.showClock(() => clock.offsetMs);
  const following = follow(shared, {
    kind: LIVE_LIMITS,
    facts: buckets.live,
    words: { plural: 'live limits', metric: 'limit' },
    clock,
    log,
    observer,
    apply: (limit) => applyLive(buckets, limit, log),
  });
  const { topic } = LIVE_LIMITS;
  return {
    ...following,
    publisher: {
      nowMs: () => shared.withRecord(topic, (record) => record.nowMs()),
      publish: (limits, replaced) =>
        shared.withRecord(topic, (record) =>
          record.publish(limits.map(messageOf), replaced.map(LIVE_LIMITS.write)),
        ),
    },
  };
}

function messageOf(limit: LiveLimit) {
  return { text: LIVE_LIMITS.write(limit), untilMs: limit.untilMs };
}

/** How long a command waits for Redis before it does without live limits. */
const COMMAND_WAIT_MS = 1_000;

/** Live limits, and the clock by which they expire. */
export interface ReadLiveLimits {
  readonly limits: readonly LiveLimit[];
  readonly clock: SharedClock;
}

/** The live limits that the store holds. Rejects where it does not answer; none where no replica shares the store. */
export async function readLiveLimits(shared: SharedStore | undefined): Promise<ReadLiveLimits> {
  const clock = new SharedClock();
  if (shared === undefined) return { limits: [], clock };
  const texts = await shared.withRecord(
    LIVE_LIMITS.topic,
    async (record) => {
      clock.read(await record.time());
      return record.read();
    },
    COMMAND_WAIT_MS,
  );
  const read = texts.map((text) => LIVE_LIMITS.read(text, clock.nowMs()));
  return { limits: read.filter((limit) => limit !== undefined), clock };
}

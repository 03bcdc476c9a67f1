import { setTimeout } from 'node:timers/promises';
import type { Logger } from 'pino';
import { applyLive } from '../admin/limits/apply.ts';
import { type LimitPublisher, recorded } from '../admin/limits/live.ts';
import type { Settings } from '../config/settings/settings.ts';
import { type LiveLimit, liveLimitChannel, readLiveLimit } from '../domain/live-limits.ts';
import type { Buckets } from '../gateway/buckets.ts';
import { listen } from '../store/redis/channel.ts';
import { openRecord } from '../store/redis/record.ts';

interface RunningLiveLimits {
  /** Undefined with the memory store, where this process is the only replica. */
  readonly publisher: LimitPublisher | undefined;
  /** Resolves once the live limits that were set before are in force, or after a second without Redis. */
  readonly ready: Promise<void>;
  close(): void;
}

/** A replica starts without Redis, and receives the live limits once Redis is back. */
const LONGEST_WAIT_MS = 1_000;

/** Follows the live limits of all replicas. While Redis is down, those that are known stay in force until they expire. */
export function runLiveLimits(store: Settings['store'], buckets: Buckets, log: Logger): RunningLiveLimits {
  if (store.kind === 'memory') return { publisher: undefined, ready: Promise.resolve(), close() {} };
  const name = liveLimitChannel(store.keyPrefix);
  const channel = listen(store, name, {
    message(text) {
      const limit = readLiveLimit(text);
      if (limit === undefined) log.warn('received a live limit that cannot be read');
      else applyLive(buckets, limit, log);
    },
    connected(isConnected, problem) {
      if (!isConnected) log.warn({ problem }, 'live limits do not reach this replica until Redis is back');
    },
    missingFrom: (record) =>
      buckets.live
        .remembered(Date.now())
        .map(recorded)
        .filter(({ text }) => !record.has(text)),
  });
  const late = setTimeout(LONGEST_WAIT_MS, undefined, { ref: false });
  return {
    publisher: {
      nowMs: () => openRecord(store, name, (record) => record.nowMs()),
      publish: (limits, replaced) =>
        openRecord(store, name, async (record) => {
          const texts = replaced.map((limit) => recorded(limit).text);
          for (const limit of limits) await record.publish(recorded(limit), texts);
        }),
    },
    ready: Promise.race([channel.subscribed, late]),
    close: () => channel.close(),
  };
}

/** How long a command waits for Redis before it does without live limits. */
const COMMAND_WAIT_MS = 1_000;

/** The live limits that Redis holds. Rejects where it does not answer; none with the memory store. */
export async function readLiveLimits(store: Settings['store']): Promise<readonly LiveLimit[]> {
  if (store.kind === 'memory') return [];
  const name = liveLimitChannel(store.keyPrefix);
  const texts = await openRecord(store, name, (record) => record.read(), COMMAND_WAIT_MS);
  return texts.map(readLiveLimit).filter((limit) => limit !== undefined);
}

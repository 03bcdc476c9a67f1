import type { Logger } from 'pino';
import { withinMs } from '../domain/awaitable.ts';
import { LOOK_SECONDS } from '../domain/pace.ts';
import { type ChannelListener, LONGEST_MESSAGE, type SharedStore } from '../store/shared-store.ts';
import type { SharedClock } from './clock.ts';
import type { Fact, FactKind, Facts } from './facts.ts';
import { Ignored, type SharedKind, type SharedObserver } from './ignored.ts';

/** What follows the facts of one kind. */
export interface Follower<T extends Fact> {
  readonly kind: FactKind<T>;
  readonly facts: Pick<Facts<T>, 'has' | 'missingFrom'>;
  /** In messages of the log, such as `live limits`; and in metrics. */
  readonly words: { readonly plural: string; readonly metric: SharedKind };
  readonly clock: SharedClock;
  readonly log: Logger;
  readonly observer: Pick<SharedObserver, 'sharedIgnored'>;
  /** Puts a fact in force, or does nothing if it is known already. */
  apply(fact: T): void;
  connected?(isConnected: boolean): void;
}

export interface Following {
  /** Resolves once the facts of before are in force, or after a second without Redis. */
  readonly ready: Promise<void>;
  close(): void;
}

/** A replica starts without Redis, and receives the facts once Redis is back. */
const LONGEST_WAIT_MS = 1_000;

/** Follows the facts of all replicas. While Redis is down, those that are known stay in force until they expire. */
export function follow<T extends Fact>(store: SharedStore, follower: Follower<T>): Following {
  const channel = store.subscribe(follower.kind.topic, new FactListener(follower));
  return {
    ready: withinMs(channel.subscribed, LONGEST_WAIT_MS, false),
    close: () => channel.close(),
  };
}

/** Texts of the record that cannot be read are counted once in so long, not at every read of the record. */
const REFUSED_LIFE_MS = 10 * 60_000;

/** Beyond this many, such texts are counted again. */
const MOST_REFUSED = 10_000;

class FactListener<T extends Fact> implements ChannelListener {
  readonly #follower: Follower<T>;
  readonly #ignored: Ignored;
  readonly #refused = new Set<string>();
  #refusedSinceMs = performance.now();
  #wasOwnClockWrong = false;

  constructor(follower: Follower<T>) {
    this.#follower = follower;
    this.#ignored = new Ignored(follower.words.metric, follower.observer, follower.log);
  }

  message(text: string): void {
    const { facts, kind, clock } = this.#follower;
    if (text.length > LONGEST_MESSAGE) {
      this.#ignored.add('length');
      return;
    }
    if (facts.has(text) || this.#refused.has(text)) return;
    const fact = kind.read(text, clock.nowMs());
    if (fact === undefined) this.#refuse(text);
    else this.#follower.apply(fact);
  }

  connected(isConnected: boolean, problem?: string): void {
    const { log, words } = this.#follower;
    this.#follower.connected?.(isConnected);
    if (!isConnected) log.warn({ problem }, `${words.plural} do not reach this replica until Redis is back`);
    else if (problem !== undefined) {
      log.warn(
        { problem },
        `${words.plural} reach this replica up to ${LOOK_SECONDS} seconds late: the Redis user may not subscribe`,
      );
    }
  }

  time(reading: Parameters<SharedClock['read']>[0]): void {
    const { clock, log } = this.#follower;
    clock.read(reading);
    const { isOwnWrong, offsetMs = 0 } = clock;
    if (isOwnWrong === this.#wasOwnClockWrong) return;
    this.#wasOwnClockWrong = isOwnWrong;
    const offsetSeconds = Math.round(offsetMs) / 1_000;
    if (isOwnWrong) log.warn({ offsetSeconds }, 'the clock of this replica differs from that of Redis');
    else log.info({ offsetSeconds }, 'the clock of this replica agrees with that of Redis again');
  }

  leftOut(count: number): void {
    this.#ignored.add('length', count);
  }

  missingFrom(record: ReadonlySet<string>) {
    return this.#follower.facts.missingFrom(record, this.#follower.clock.nowMs());
  }

  restored(count: number): void {
    const { log, words } = this.#follower;
    log.info({ count }, `${words.plural} that Redis did not hold are recorded again`);
  }

  failed(error: unknown): void {
    this.#ignored.add('failed', 1, error instanceof Error ? error.message : String(error));
  }

  #refuse(text: string): void {
    const nowMs = performance.now();
    if (nowMs - this.#refusedSinceMs > REFUSED_LIFE_MS || this.#refused.size >= MOST_REFUSED) {
      this.#refused.clear();
      this.#refusedSinceMs = nowMs;
    }
    this.#refused.add(text);
    this.#ignored.add('form');
  }
}

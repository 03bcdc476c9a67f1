import type { Logger } from 'pino';
import { LOOK_SECONDS } from '../domain/pace.ts';
import {
  type ChannelListener,
  type ClockReading,
  LONGEST_MESSAGE,
  type SharedStore,
} from '../store/shared-store.ts';
import { type Fact, type KnownFacts, recordedFact } from './facts.ts';
import { Ignored, type SharedObserver } from './ignored.ts';
import type { SharedClock } from './shared-clock.ts';

/** What happens to the facts of one kind at this replica. */
export interface FactEvents<T extends Fact> {
  /** Puts a fact in force, or does nothing if it is known already. */
  apply(fact: T): void;
  /** A fact has expired. */
  ended(fact: T): void;
  /** The facts of other replicas arrive, or no longer arrive. */
  connected?(isConnected: boolean): void;
}

/** What the facts of every kind are shared with. */
export interface FactSharing {
  /** Undefined where no other replica shares the store. */
  readonly store: SharedStore | undefined;
  /** The clock by which facts are made and expire. */
  readonly clock: SharedClock;
  readonly observer: Pick<SharedObserver, 'sharedIgnored'>;
  readonly log: Logger;
}

/** Texts of the record that cannot be read are counted once in this time, not at every read of the record. */
const REFUSED_LIFE_MS = 10 * 60_000;

/** Beyond this many, such texts are counted again. */
const MOST_REFUSED = 10_000;

/** Puts the facts of a channel in force, and reports what is wrong with them or with the channel. */
export class FactListener<T extends Fact> implements ChannelListener {
  readonly #facts: KnownFacts<T>;
  readonly #events: FactEvents<T>;
  readonly #clock: SharedClock;
  readonly #log: Logger;
  readonly #ignored: Ignored;
  readonly #refused = new Set<string>();
  #refusedSinceMs = performance.now();
  #readAtMs = performance.now();
  #isRead = false;
  #isLost = false;

  constructor(facts: KnownFacts<T>, { clock, observer, log }: FactSharing, events: FactEvents<T>) {
    this.#facts = facts;
    this.#events = events;
    this.#clock = clock;
    this.#log = log;
    this.#ignored = new Ignored(facts.kind.metric, observer, log);
  }

  /** How long ago the record was read; since the start if it never was. */
  get ageSeconds(): number {
    return Math.max(0, performance.now() - this.#readAtMs) / 1_000;
  }

  /** Whether the whole record was read since the start. */
  get isRead(): boolean {
    return this.#isRead;
  }

  message(text: string, untilMs = 0): void {
    if (text.length > LONGEST_MESSAGE) {
      this.#ignored.add('length');
      return;
    }
    if (this.#facts.has(text, untilMs) || this.#refused.has(text)) return;
    const fact = this.#facts.kind.read(text, this.#clock.nowMs());
    if (fact === undefined) this.#refuse(text);
    else this.#events.apply(recordedFact(fact, untilMs));
  }

  connected(isConnected: boolean, problem?: string): void {
    const { plural } = this.#facts.kind;
    const wasLost = this.#isLost;
    this.#isLost = !isConnected;
    this.#isRead ||= isConnected;
    this.#events.connected?.(isConnected);
    if (!isConnected) this.#log.warn({ problem }, `${plural} do not reach this replica until Redis is back`);
    else if (problem !== undefined) {
      this.#log.warn(
        { problem },
        `${plural} reach this replica up to ${LOOK_SECONDS} seconds late: the Redis user may not subscribe`,
      );
    } else if (wasLost) this.#log.info(`${plural} reach this replica again`);
  }

  time(reading: ClockReading, isReference: boolean): void {
    this.#readAtMs = reading.answeredMs;
    if (!this.#clock.read(reading, isReference)) return;
    const { isOwnWrong, offsetMs = 0 } = this.#clock;
    const offsetSeconds = Math.round(offsetMs) / 1_000;
    if (isOwnWrong)
      this.#log.warn({ offsetSeconds }, 'the clock of this replica differs from the clock of Redis');
    else this.#log.info({ offsetSeconds }, 'the clock of this replica agrees with the clock of Redis again');
  }

  leftOut(count: number): void {
    this.#ignored.add('length', count);
  }

  missingFrom(record: ReadonlySet<string>) {
    return this.#facts.missingFrom(record, this.#clock.nowMs());
  }

  restored(count: number): void {
    this.#log.info({ count }, `${this.#facts.kind.plural} that Redis did not hold are recorded again`);
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

import { withinMs } from '../domain/awaitable.ts';
import { pace } from '../domain/pace.ts';
import type { Channel } from '../store/shared-store.ts';
import { type FactEvents, FactListener, type FactSharing } from './fact-listener.ts';
import { type MadeFacts, type Making, makeFacts, recordFacts } from './fact-record.ts';
import type { Fact, KnownFacts } from './facts.ts';

/** A replica starts without Redis, and receives the facts once Redis is back. */
const LONGEST_WAIT_MS = 1_000;

/**
 * The facts of one kind at this replica. It receives those that other replicas make, and makes facts for all of them. While Redis is
 * down, those that are known stay in force until they expire.
 */
export class FollowedFacts<T extends Fact> {
  readonly known: KnownFacts<T>;
  /** Resolves when earlier facts are in force, or after one second if Redis does not answer. */
  readonly ready: Promise<unknown>;
  readonly #sharing: FactSharing;
  readonly #events: FactEvents<T>;
  readonly #listener: FactListener<T>;
  readonly #channel: Channel | undefined;
  readonly #timer: NodeJS.Timeout;
  /** Those that have not been reported as ended, by key. */
  readonly #open = new Map<string, T>();
  #nextEndMs = Number.POSITIVE_INFINITY;

  constructor(known: KnownFacts<T>, sharing: FactSharing, events: FactEvents<T>) {
    this.known = known;
    this.#sharing = sharing;
    this.#events = events;
    this.#listener = new FactListener(known, sharing, events);
    known.onAdded = (fact) => this.#added(fact);
    this.#timer = setInterval(() => this.#look(), pace.endsMs).unref();
    this.#channel = sharing.store?.subscribe(known.kind.topic, this.#listener);
    this.ready =
      this.#channel === undefined
        ? Promise.resolve()
        : withinMs(this.#channel.subscribed, LONGEST_WAIT_MS, false);
  }

  /** Whether other replicas may share the store. */
  get isShared(): boolean {
    return this.#sharing.store !== undefined;
  }

  /** How long ago the facts of all replicas were read. Without other replicas, nobody else makes any. */
  get ageSeconds(): number {
    return this.isShared ? this.#listener.ageSeconds : 0;
  }

  /** Whether the facts of all replicas were read since the start. Until then it is unknown what they are. */
  get isRead(): boolean {
    return !this.isShared || this.#listener.isRead;
  }

  /** Unix time by the clock that all replicas share, as far as this process knows it. */
  get nowMs(): number {
    return this.#sharing.clock.nowMs();
  }

  /** Puts a fact in force here, or does nothing if it is known already. */
  apply(fact: T): void {
    this.#events.apply(fact);
  }

  /** Makes facts for all other replicas. Rejects as `MessageRecord.publish` does, and if `making` throws. */
  async make(making: Making<T>): Promise<MadeFacts<T>> {
    const { store } = this.#sharing;
    const { kind } = this.known;
    if (store === undefined) {
      const current = making.keys.flatMap((key) => this.known.find(key, this.nowMs) ?? []);
      return { facts: makeFacts(making, current, this.nowMs), received: 0, notPublished: undefined };
    }
    const known = making.keys.flatMap((key) => this.known.findKept(key) ?? []);
    return store.withRecord(kind.topic, (record) => recordFacts(record, kind, making, known));
  }

  /** Whether the facts survive a restart of the store; undefined if unknown. */
  async isLasting(): Promise<boolean | undefined> {
    const { store } = this.#sharing;
    return store?.withRecord(this.known.kind.topic, (record) => record.isLasting()).catch(() => undefined);
  }

  close(): void {
    clearInterval(this.#timer);
    this.#channel?.close();
  }

  #added(fact: T): void {
    const key = this.known.kind.keyOf(fact);
    if (fact.isRemoved) this.#open.delete(key);
    else {
      this.#open.set(key, fact);
      this.#nextEndMs = Math.min(this.#nextEndMs, fact.untilMs);
    }
  }

  #look(): void {
    this.#sharing.clock.look();
    this.#reportEnds();
  }

  /** Reports facts that have expired, once each and at most a second late. */
  #reportEnds(): void {
    const { nowMs } = this;
    if (nowMs < this.#nextEndMs) return;
    this.#nextEndMs = Number.POSITIVE_INFINITY;
    for (const [key, fact] of this.#open) {
      if (nowMs < fact.untilMs) this.#nextEndMs = Math.min(this.#nextEndMs, fact.untilMs);
      else {
        this.#open.delete(key);
        this.#events.ended(fact);
      }
    }
  }
}

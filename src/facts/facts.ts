import type { SharedKind } from './ignored.ts';

/** What one replica changes and all replicas know until it expires. */
export interface Fact {
  /** Unix time at which it was made, by the clock of Redis. */
  readonly atMs: number;
  /** Unix time at which it expires, by the clock of Redis. */
  readonly untilMs: number;
  /** Whether this only removes an earlier one. */
  readonly isRemoved?: boolean;
  /** The host name of the replica that it was made at; undefined for `weir revoke`, and where an older version made it. */
  readonly replica?: string;
}

/** One kind of facts: how they are named, written and read. */
export interface FactKind<T extends Fact> {
  /** The last part of the channel's name. */
  readonly topic: 'limits' | 'revocations' | 'blocks';
  /** In messages of the log, such as `live limits`. */
  readonly plural: string;
  /** In metrics. */
  readonly metric: SharedKind;
  /** At most this many are kept. */
  readonly most: number;
  /** What a fact is about. Of two facts about the same, the latest wins. */
  keyOf(fact: T): string;
  /** The message. The same fact always has the same text. */
  write(fact: T): string;
  /** Parses a message; undefined for one that does not fit the schema and its bounds. */
  read(text: string, nowMs: number): T | undefined;
}

/** Facts that have expired are removed at most this often: each removal looks at all of them. */
const SWEEP_MS = 1_000;

/** Beyond the cap the earliest are removed, an eighth at a time, because that takes sorting. */
const SPARE_SHARE = 1 / 8;

interface Kept<T> {
  readonly fact: T;
  readonly text: string;
}

/**
 * The facts of one kind that this process knows. There is one total order: by `atMs`, and for facts of the same millisecond by their
 * text, where the text that sorts first wins. So all replicas end up with the same facts, whatever the order of arrival.
 */
export class Facts<T extends Fact> {
  readonly kind: FactKind<T>;
  readonly #kept = new Map<string, Kept<T>>();
  readonly #texts = new Set<string>();
  #sweptMs = 0;
  /** Called with each fact that changes something. */
  onAdded: (fact: T) => void = () => {};

  constructor(kind: FactKind<T>) {
    this.kind = kind;
  }

  /** How many are kept; some of them may have expired. */
  get size(): number {
    return this.#kept.size;
  }

  get isEmpty(): boolean {
    return this.size === 0;
  }

  /** Adds a fact. Returns false if it changes nothing. */
  add(fact: T, nowMs: number): boolean {
    if (fact.untilMs <= nowMs) return false;
    this.#sweep(nowMs);
    const key = this.kind.keyOf(fact);
    const after = { fact, text: this.kind.write(fact) };
    const before = this.#kept.get(key);
    if (before !== undefined && byOrder(after, before) <= 0) return false;
    this.#remove(key);
    this.#kept.set(key, after);
    this.#texts.add(after.text);
    this.#makeRoom();
    const isKept = this.#texts.has(after.text);
    if (isKept) this.onAdded(fact);
    return isKept;
  }

  /** The latest fact about `key`, unless it has expired or was removed. */
  findInForce(key: string, nowMs: number): T | undefined {
    const fact = this.find(key, nowMs);
    return fact?.isRemoved ? undefined : fact;
  }

  /** All that have neither expired nor been removed, the first to expire first. */
  inForce(nowMs: number): readonly T[] {
    return [...this.all()]
      .filter(({ untilMs, isRemoved }) => nowMs < untilMs && !isRemoved)
      .sort((a, b) => a.untilMs - b.untilMs);
  }

  /** The latest fact about `key`, which may be a removal, unless it has expired. */
  find(key: string, nowMs: number): T | undefined {
    const fact = this.#kept.get(key)?.fact;
    return fact === undefined || fact.untilMs <= nowMs ? undefined : fact;
  }

  /** Whether the fact of this message is kept. */
  has(text: string): boolean {
    return this.#texts.has(text);
  }

  /** All facts that are kept. Some may have expired. */
  *all(): Generator<T> {
    for (const { fact } of this.#kept.values()) yield fact;
  }

  /** The messages that have not expired and that `record` lacks. */
  missingFrom(record: ReadonlySet<string>, nowMs: number): readonly { text: string; untilMs: number }[] {
    return [...this.#kept.values()]
      .filter(({ fact, text }) => nowMs < fact.untilMs && !record.has(text))
      .map(({ fact, text }) => ({ text, untilMs: fact.untilMs }));
  }

  #remove(key: string): void {
    const kept = this.#kept.get(key);
    if (kept !== undefined) this.#texts.delete(kept.text);
    this.#kept.delete(key);
  }

  #sweep(nowMs: number): void {
    if (Math.abs(nowMs - this.#sweptMs) < SWEEP_MS) return;
    this.#sweptMs = nowMs;
    for (const [key, { fact }] of this.#kept) if (fact.untilMs <= nowMs) this.#remove(key);
  }

  #makeRoom(): void {
    const { most } = this.kind;
    if (this.#kept.size <= most * (1 + SPARE_SHARE)) return;
    const earliest = [...this.#kept].sort(([, a], [, b]) => byOrder(a, b)).slice(0, this.#kept.size - most);
    for (const [key] of earliest) this.#remove(key);
  }
}

/** Facts as they are read: what adds to them may have more to do than to add. */
export type KnownFacts<T extends Fact> = Omit<Facts<T>, 'add'>;

/** Positive if `a` comes after `b`, and so takes its place. */
function byOrder<T extends Fact>(a: Kept<T>, b: Kept<T>): number {
  if (a.fact.atMs !== b.fact.atMs) return a.fact.atMs - b.fact.atMs;
  if (a.text === b.text) return 0;
  return a.text < b.text ? 1 : -1;
}

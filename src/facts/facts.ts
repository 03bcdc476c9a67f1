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
  /** Until when it is kept, if that is after its end: it has replaced a fact that ends then. The message does not have it. */
  readonly keptUntilMs?: number;
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

/** As many facts are known as are kept. Redis would take another one, but the replicas would drop one for it. */
export class NoRoom extends Error {
  override readonly name = 'NoRoom';

  constructor({ most, plural }: Pick<FactKind<Fact>, 'most' | 'plural'>) {
    super(
      `Nothing was changed: at most ${most} ${plural} are kept, and there is no room for another. ` +
        'What is removed or replaced takes room until it would have ended.',
    );
  }
}

/** Facts that are no longer needed are removed at most this often: each removal looks at all of them. */
const SWEEP_MS = 1_000;

/** Beyond the cap those that are kept for the shortest time are dropped, an eighth at a time, because that takes sorting. */
const SPARE_SHARE = 1 / 8;

interface Kept<T> {
  readonly fact: T;
  readonly text: string;
  /** The end of the fact, or of any fact that it has replaced: another replica or an older record may still have that one. */
  untilMs: number;
}

/**
 * The facts of one kind that this process knows. There is one total order: by `atMs`, and for facts of the same millisecond by their
 * text, where the text that sorts first wins. So all replicas end up with the same facts, whatever the order of arrival.
 */
export class Facts<T extends Fact> {
  readonly kind: FactKind<T>;
  readonly #kept = new Map<string, Kept<T>>();
  readonly #byText = new Map<string, Kept<T>>();
  /** Of those that were dropped beyond the cap, the one that would have been kept for the longest time. */
  #dropped: Kept<T> | undefined;
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
    const { untilMs, keptUntilMs = 0 } = fact;
    const key = this.kind.keyOf(fact);
    const before = this.#kept.get(key);
    const neededMs = Math.max(untilMs, keptUntilMs, before?.untilMs ?? 0);
    const after = { fact, text: this.kind.write(fact), untilMs: neededMs };
    if (neededMs <= nowMs) return false;
    // Ahead of the sweep, which must not remove the later of two facts while the earlier one would be in force.
    if (before !== undefined) before.untilMs = neededMs;
    this.#sweep(nowMs);
    if (before === undefined ? this.#wouldDrop(after) : byOrder(after, before) <= 0) return false;
    this.#remove(key);
    this.#kept.set(key, after);
    this.#byText.set(after.text, after);
    this.#makeRoom();
    const wasInForce = before !== undefined && nowMs < before.fact.untilMs && !before.fact.isRemoved;
    const isChanged = this.#byText.has(after.text) && (nowMs < untilMs || wasInForce);
    if (isChanged) this.onAdded(fact);
    return isChanged;
  }

  /** Whether facts about these keys can be added without another being dropped for them. */
  hasRoomFor(keys: readonly string[], nowMs: number): boolean {
    let size = keys.filter((key) => !this.#kept.has(key)).length;
    if (size === 0) return true;
    for (const { untilMs } of this.#kept.values()) if (nowMs < untilMs) size += 1;
    return size <= this.kind.most;
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

  /** The latest fact about `key`, which may be a removal and may have expired, with the time until which it is kept. */
  findKept(key: string): T | undefined {
    const kept = this.#kept.get(key);
    return kept && { ...kept.fact, keptUntilMs: kept.untilMs };
  }

  /** Whether the fact of this message is kept. It is then kept until `untilMs` at least. */
  has(text: string, untilMs = 0): boolean {
    const kept = this.#byText.get(text);
    if (kept !== undefined && kept.untilMs < untilMs) kept.untilMs = untilMs;
    return kept !== undefined;
  }

  /** All facts that are kept. Some may have expired. */
  *all(): Generator<T> {
    for (const { fact } of this.#kept.values()) yield fact;
  }

  /** The messages that are still needed and that `record` lacks. */
  missingFrom(record: ReadonlySet<string>, nowMs: number): readonly { text: string; untilMs: number }[] {
    return [...this.#kept.values()]
      .filter(({ text, untilMs }) => nowMs < untilMs && !record.has(text))
      .map(({ text, untilMs }) => ({ text, untilMs }));
  }

  #remove(key: string): void {
    const kept = this.#kept.get(key);
    if (kept !== undefined) this.#byText.delete(kept.text);
    this.#kept.delete(key);
  }

  #sweep(nowMs: number): void {
    if (Math.abs(nowMs - this.#sweptMs) < SWEEP_MS) return;
    this.#sweptMs = nowMs;
    for (const [key, { untilMs }] of this.#kept) if (untilMs <= nowMs) this.#remove(key);
  }

  #makeRoom(): void {
    const { most } = this.kind;
    if (this.#kept.size <= most * (1 + SPARE_SHARE)) return;
    const first = [...this.#kept.values()].sort(byEnd).slice(0, this.#kept.size - most);
    for (const { fact } of first) this.#remove(this.kind.keyOf(fact));
    this.#dropped = first.at(-1);
  }

  /** The record still has what was dropped: if that were added again, each read of the record would change what is in force. */
  #wouldDrop(kept: Kept<T>): boolean {
    return this.#dropped !== undefined && byEnd(kept, this.#dropped) <= 0;
  }
}

/** Facts as they are read: what adds to them may have more to do than to add. */
export type KnownFacts<T extends Fact> = Omit<Facts<T>, 'add'>;

/** A fact of a record that drops it at `untilMs`. */
export function recordedFact<T extends Fact>(fact: T, untilMs: number): T {
  return untilMs > fact.untilMs ? { ...fact, keptUntilMs: untilMs } : fact;
}

/** Positive if `a` is kept for longer than `b`. */
function byEnd<T extends Fact>(a: Kept<T>, b: Kept<T>): number {
  return a.untilMs - b.untilMs || byOrder(a, b);
}

/** Positive if `a` comes after `b`, and so takes its place. */
function byOrder<T extends Fact>(a: Kept<T>, b: Kept<T>): number {
  if (a.fact.atMs !== b.fact.atMs) return a.fact.atMs - b.fact.atMs;
  if (a.text === b.text) return 0;
  return a.text < b.text ? 1 : -1;
}

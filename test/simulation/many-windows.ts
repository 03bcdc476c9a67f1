/**
 * Requests of several Accounts and principals of one Organization, each charged to one to eight buckets of different windows, while
 * limits are raised, lowered, added and removed. Every answer is held against a model of its own, which keeps every charge.
 */
import { bucketKey } from '../../src/store/keys.ts';
import { type BucketCharge, type BucketState, costIn, type Decision } from '../../src/store/store.ts';
import type { ClockedStore } from '../store/conformance.ts';
import { ExactBucket } from './exact-bucket.ts';

const START_US = 1_790_000_000_000_000;
const US_PER_SECOND = 1_000_000;
const DAY_SECONDS = 86_400;
const WINDOWS_SECONDS = [1, 1, 2, 7, 60, 60, 300, 3600, DAY_SECONDS, 30 * DAY_SECONDS, 31 * DAY_SECONDS];
const MOST_ROWS = 8;
const OWNERS = { account: ['a', 'b', 'c'], organization: ['org'], principal: ['p', 'q'] } as const;

type Scope = keyof typeof OWNERS;

/** A limit of every owner of a scope. */
interface Row {
  readonly name: string;
  readonly per: Scope;
  readonly windowSeconds: number;
  readonly counts: 'points' | 'requests';
  readonly isShadow: boolean;
  limit: number;
}

/** Plays one scenario, and fails at the first answer that is wrong. */
export class ManyWindows {
  readonly #store: ClockedStore;
  readonly #prefix: string;
  readonly #seed: number;
  readonly #random: () => number;
  readonly #rows: Row[] = [];
  readonly #buckets = new Map<string, ExactBucket>();
  /** By key: the limits of single owners. */
  readonly #overrides = new Map<string, number>();
  /** Moments at which something was said to change. */
  #moments: number[] = [];
  /** Of the longest pause that is usual. */
  readonly #paceUs: number;
  #named = 0;
  #nowUs = START_US;
  readonly seen = { admitted: 0, denied: 0, exact: 0 };

  constructor(store: ClockedStore, prefix: string, seed: number) {
    this.#store = store;
    this.#prefix = prefix;
    this.#seed = seed;
    this.#random = seeded(seed);
    const rows = this.#upTo(1, MOST_ROWS);
    for (let row = 0; row < rows; row++) this.#add();
    this.#paceUs = (this.#one(this.#rows).windowSeconds * US_PER_SECOND) / this.#one([5, 50, 500, 5000]);
  }

  get keys(): Iterable<string> {
    return this.#buckets.keys();
  }

  async play(decisions: number): Promise<void> {
    for (let made = 0; made < decisions; made++) {
      this.#pass();
      if (this.#random() < 0.03) this.#change();
      await this.#decide();
    }
  }

  async #decide(): Promise<void> {
    const used = this.#rows.filter(() => this.#random() < 0.75);
    const rows = used.length === 0 ? [this.#one(this.#rows)] : used;
    const owners = {
      account: this.#one(OWNERS.account),
      organization: 'org',
      principal: this.#one(OWNERS.principal),
    };
    const buckets = rows.map((row) => this.#bucketOf(row, owners[row.per]));
    const cost = this.#random() < 0.04 ? this.#upTo(1, 1.1 * this.#one(rows).limit) : this.#upTo(1, 10);
    const decision = await this.#store.charge({ buckets, cost }, this.#nowUs);
    this.#judge(buckets, cost, decision);
  }

  #bucketOf({ name, windowSeconds, counts, isShadow, limit }: Row, owner: string): BucketCharge {
    const key = bucketKey(this.#prefix, 'org', name, owner);
    const inForce = this.#overrides.get(key) ?? limit;
    const bucket = { key, limit: inForce, windowSeconds, counts };
    return isShadow ? { ...bucket, shadow: true } : bucket;
  }

  #judge(buckets: readonly BucketCharge[], cost: number, decision: Decision): void {
    if (decision.outcome === 'uncounted') throw new Error(`uncounted: ${decision.reason}`);
    const isAdmitted = decision.outcome === 'admitted';
    let isRefusing = false;
    this.#moments = [];
    for (const [index, bucket] of buckets.entries()) {
      const state = decision.buckets[index];
      if (state === undefined) throw new Error('a bucket without its state');
      this.#judgeBucket(bucket, costIn(bucket, cost), isAdmitted, state);
      isRefusing ||= state.retryAfterUs > 0 && bucket.shadow !== true;
    }
    this.#claim(
      isAdmitted !== isRefusing,
      'a charge is denied by a bucket without room, and by nothing else',
    );
    this.seen[decision.outcome] += 1;
  }

  #judgeBucket(bucket: BucketCharge, points: number, isAdmitted: boolean, state: BucketState): void {
    const exact = this.#exactOf(bucket);
    const kept = exact.keptTooLong(this.#nowUs);
    const room = bucket.limit - exact.held(this.#nowUs) - points;
    const isFull = state.retryAfterUs > 0;
    if (kept === 0) this.seen.exact += 1;
    this.#claim(
      isFull ? room < kept : room >= 0,
      `${bucket.key} has room for ${room} and is full: ${isFull}`,
    );
    if (isFull) this.#judgeWait(exact, points, state.retryAfterUs);
    else if (isAdmitted) exact.add(this.#nowUs, points);
    const left = bucket.limit - exact.held(this.#nowUs);
    this.#claim(state.remaining <= Math.max(0, left), `${bucket.key} has ${left} left`);
    this.#claim(state.remaining >= Math.max(0, left - kept), `${bucket.key} has ${left} left`);
    this.#claim(state.resetAfterUs === exact.resetAfterUs(this.#nowUs), `${bucket.key} is full again`);
    this.#moments.push(this.#nowUs + state.retryAfterUs, this.#nowUs + state.resetAfterUs);
  }

  /** The cost fits when the wait is over, and not a microsecond earlier; one above the limit waits for a window. */
  #judgeWait(exact: ExactBucket, points: number, retryAfterUs: number): void {
    const room = (afterUs: number) => exact.limit - exact.heldLater(this.#nowUs + afterUs) - points;
    if (points > exact.limit) {
      this.#claim(retryAfterUs === exact.windowUs, 'a cost above the limit waits for a window');
      return;
    }
    this.#claim(room(retryAfterUs) >= 0, 'the cost fits when the wait is over');
    this.#claim(
      room(retryAfterUs - 1) < exact.keptTooLong(this.#nowUs),
      'the wait is no longer than it has to be',
    );
  }

  #claim(holds: boolean, what: string): void {
    if (!holds) throw new Error(`seed ${this.#seed}, ${this.#nowUs - START_US} µs: ${what}`);
  }

  #exactOf({ key, limit, windowSeconds }: BucketCharge): ExactBucket {
    let exact = this.#buckets.get(key);
    if (exact === undefined) {
      exact = new ExactBucket(limit, windowSeconds * US_PER_SECOND);
      this.#buckets.set(key, exact);
    }
    exact.setLimit(limit, this.#nowUs);
    return exact;
  }

  /** Lets some time pass: none, a little, or until just before, at or after a moment that an answer named. */
  #pass(): void {
    const chance = this.#random();
    if (chance < 0.2) return;
    const moment = this.#one(this.#moments) ?? 0;
    if (chance < 0.4 && moment > this.#nowUs && moment < this.#nowUs + 10 * this.#paceUs) {
      this.#nowUs = Math.max(this.#nowUs, moment + this.#one([-1, 0, 1]));
    } else if (chance < 0.99) {
      this.#nowUs += Math.floor(this.#random() * this.#paceUs);
    } else {
      this.#nowUs += Math.floor(this.#random() * 1.1 * this.#one(this.#rows).windowSeconds * US_PER_SECOND);
    }
  }

  /** Raises or lowers a limit, for all owners or for one, or removes or adds a row. */
  #change(): void {
    const row = this.#one(this.#rows);
    const chance = this.#random();
    if (chance < 0.4) {
      row.limit = this.#limit();
    } else if (chance < 0.7) {
      const key = bucketKey(this.#prefix, 'org', row.name, this.#one<string>(OWNERS[row.per]));
      if (this.#random() < 0.3) this.#overrides.delete(key);
      else this.#overrides.set(key, this.#limit());
    } else if (chance < 0.85 && this.#rows.length > 1) {
      this.#rows.splice(this.#rows.indexOf(row), 1);
    } else if (this.#rows.length < MOST_ROWS) {
      this.#add();
    }
  }

  #add(): void {
    this.#rows.push({
      name: `row-${this.#named++}`,
      per: this.#one(['account', 'organization', 'principal']),
      windowSeconds: this.#one(WINDOWS_SECONDS),
      counts: this.#random() < 0.2 ? 'requests' : 'points',
      isShadow: this.#random() < 0.15,
      limit: this.#limit(),
    });
  }

  #limit(): number {
    const [least, most] = this.#one([
      [1, 60],
      [60, 499],
      [500, 600],
      [749, 750],
      [600, 5000],
    ] as const);
    return this.#upTo(least, most);
  }

  #upTo(least: number, most: number): number {
    return least + Math.floor(this.#random() * (most - least + 1));
  }

  #one<T>(some: readonly T[]): T {
    return some[Math.floor(this.#random() * some.length)] as T;
  }
}

/** Mulberry32. */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

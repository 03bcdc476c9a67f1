import { randomBytes } from 'node:crypto';
import { bucketOf, SLOTS_ENDING } from '../keys.ts';
import {
  type BucketCharge,
  type BucketState,
  type Charge,
  type Decision,
  type Holder,
  isConcurrent,
} from '../store.ts';

/**
 * The slots of one request in buckets that count concurrent requests. The store takes them with the charge. They are given back when
 * everything that works on the request has ended: the exchange with the client, and the exchange with the upstream.
 */
export class Hold {
  #users = 1;
  #release: (() => void) | undefined;

  /** Whether a store counts these slots. */
  get isTaken(): boolean {
    return this.#release !== undefined;
  }

  /** @param release called once, when the request has ended; at once if it has already ended */
  take(release: () => void): void {
    this.#release = release;
    if (this.#users === 0) release();
  }

  /** Adds a user, which has to call `end`. */
  share(): void {
    this.#users += 1;
  }

  /** To be called once by the creator of the hold, and once for each `share`. */
  end(): void {
    this.#users -= 1;
    if (this.#users === 0) this.#release?.();
  }
}

/** How many slots the requests of this process hold in one bucket. */
interface Held {
  readonly key: string;
  held: number;
}

/** How many slots the requests of this process hold in each bucket that counts concurrent requests. */
export abstract class HeldSlots<Entry extends Held = Held> {
  /** Names this process among the replicas of a store: 16 characters. */
  readonly replica = randomBytes(12).toString('base64url');
  protected readonly buckets = new Map<string, Entry>();

  /** In the bucket with this key. */
  of(key: string): number {
    return this.buckets.get(key)?.held ?? 0;
  }

  /** This process, if it holds any of the bucket with this key. */
  holdersOf(key: string): readonly Holder[] {
    const slots = this.of(key);
    return slots === 0 ? [] : [{ replica: this.replica, slots }];
  }

  /** The denial of a charge, if this process alone holds all slots of one of its buckets; otherwise undefined. */
  denialOf(buckets: readonly BucketCharge[]): Decision | undefined {
    const isFull = (bucket: BucketCharge) =>
      isConcurrent(bucket) && bucket.shadow !== true && this.of(bucket.key) >= bucket.limit;
    if (!buckets.some(isFull)) return undefined;
    const states = buckets.map((bucket) => (isFull(bucket) ? slotState(0, false) : undefined));
    return { outcome: 'denied', buckets: states };
  }

  /** By the name of the bucket, of all owners together. */
  byBucket(): ReadonlyMap<string, number> {
    const sums = new Map<string, number>();
    for (const { key, held } of this.buckets.values()) {
      if (held === 0) continue;
      const name = bucketOf(key).slice(0, -SLOTS_ENDING.length);
      sums.set(name, (sums.get(name) ?? 0) + held);
    }
    return sums;
  }

  /**
   * Counts the slots of a charge until its hold ends. A second call for the same hold changes nothing.
   *
   * @param states in which a shadow bucket without room takes no slot
   */
  take({ buckets, hold }: Charge, states?: readonly BucketState[]): void {
    if (hold === undefined || hold.isTaken) return;
    const taken: Entry[] = [];
    for (const [index, bucket] of buckets.entries()) {
      if (!isConcurrent(bucket) || (states?.[index]?.retryAfterUs ?? 0) > 0) continue;
      const entry = this.enter(bucket.key);
      entry.held += 1;
      taken.push(entry);
    }
    hold.take(() => {
      for (const entry of taken) this.release(entry);
    });
  }

  /** The entry of the bucket with this key, which is created if needed. */
  protected enter(key: string): Entry {
    const known = this.buckets.get(key);
    if (known !== undefined) return known;
    const entry = this.make(key);
    this.buckets.set(key, entry);
    return entry;
  }

  protected abstract make(key: string): Entry;

  protected release(entry: Entry): void {
    entry.held -= 1;
  }
}

/** The slots of a process that counts for itself. */
export class OwnSlots extends HeldSlots {
  protected override make(key: string): Held {
    return { key, held: 0 };
  }

  protected override release(entry: Held): void {
    super.release(entry);
    if (entry.held === 0) this.buckets.delete(entry.key);
  }
}

/** When a slot becomes free is unknown. */
const RETRY_AFTER_US = 1_000_000;

/** The state of a bucket that counts concurrent requests. */
export function slotState(remaining: number, hasRoom: boolean, holders?: readonly Holder[]): BucketState {
  const state = { remaining, resetAfterUs: 0, retryAfterUs: hasRoom ? 0 : RETRY_AFTER_US };
  return holders === undefined ? state : { ...state, holders };
}

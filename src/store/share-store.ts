import { type Awaitable, andThen } from '../domain/awaitable.ts';
import { monotonicUs } from '../domain/clock.ts';
import type { Calendar } from '../domain/limits/calendar.ts';
import type { CoalescedLog } from './coalesced-log.ts';
import { Generations } from './generations.ts';
import type { HeldSlots } from './in-flight/held-slots.ts';
import { MemoryStore } from './memory-store.ts';
import { KEPT_US, type PeriodCount } from './period-count.ts';
import {
  type BucketCharge,
  type Charge,
  costIn,
  type Decision,
  type Settled,
  type Settlement,
  type Store,
  windowUsOf,
} from './store.ts';

const US_PER_MS = 1_000;
/**
 * Buckets per generation; there are two generations. Beyond that, the buckets that were charged longest ago are dropped. They are far from
 * their limits.
 */
const MOST_BUCKETS = 10_000;

/**
 * Counts in this process what the store does not: each replica admits its part of every limit, which is the limit divided by the number
 * of replicas, and at least the cost of one request, unless that is above the limit. What fits the part is `uncounted`, as the store
 * decided. What does not fit is denied, and says that the store did not decide it.
 *
 * Its part of a limit on concurrent requests is compared with all requests that run here, including requests that the store admitted.
 *
 * The counts outlive the outage until their windows have passed. A store that fails again and again therefore admits at most twice a
 * limit in any window: once by its own counts, and once by the parts.
 */
export class ShareStore implements Store {
  readonly #store: Store;
  readonly #replicas: () => number;
  readonly #nowUs: () => number;
  readonly #unixUs: () => number;
  readonly #logs = new Generations<CoalescedLog>(MOST_BUCKETS);
  readonly #counts = new Generations<PeriodCount>(MOST_BUCKETS);
  readonly #parts: MemoryStore;
  /** When all windows have passed. */
  #logsExpireUs = 0;
  /** When all periods have ended, as Unix time. They are kept apart, so that a month does not keep the logs of windows of a second. */
  #countsExpireUs = 0;

  /**
   * @param replicas how many replicas share each limit, 1 or more
   * @param nowUs a clock for tests, which gives Unix time if there are periods; it must not run backwards
   */
  constructor(store: Store, replicas: () => number, nowUs?: () => number) {
    this.#store = store;
    this.#replicas = replicas;
    this.#nowUs = nowUs ?? monotonicUs;
    this.#unixUs = nowUs ?? (() => Date.now() * US_PER_MS);
    this.#parts = new MemoryStore(nowUs, this.#logs, store.slots, this.#counts);
  }

  get slots(): HeldSlots {
    return this.#store.slots;
  }

  charge(charge: Charge): Awaitable<Decision> {
    return andThen(this.#store.charge(charge), (decision) => {
      if (decision.outcome !== 'uncounted') {
        this.#dropExpired();
        return decision;
      }
      this.#keepFor(charge);
      return degraded(decision, this.#parts.charge(this.#partOf(charge)));
    });
  }

  async peek(charge: Charge): Promise<Decision> {
    const decision = await this.#store.peek(charge);
    if (decision.outcome !== 'uncounted') return decision;
    return degraded(decision, await this.#parts.peek(this.#partOf(charge)));
  }

  /** Only what the store has admitted is settled. A part keeps what was charged to it. */
  settle(settlement: Settlement): Awaitable<Settled> {
    return this.#store.settle(settlement);
  }

  async close(): Promise<void> {
    await this.#store.close();
    await this.#parts.close();
  }

  #partOf({ buckets, cost, hold }: Charge): Charge {
    const replicas = this.#replicas();
    const partOf = (bucket: BucketCharge) => {
      const part = Math.max(costIn(bucket, cost), Math.floor(bucket.limit / replicas));
      return { ...bucket, limit: Math.min(part, bucket.limit) };
    };
    return { buckets: buckets.map(partOf), cost, hold };
  }

  #keepFor({ buckets }: Charge): void {
    const nowUs = this.#nowUs();
    for (const bucket of buckets) {
      const { calendar } = bucket;
      if (calendar !== undefined) this.#keepUntilEnd(calendar);
      else this.#logsExpireUs = Math.max(this.#logsExpireUs, nowUs + windowUsOf(bucket));
    }
  }

  #keepUntilEnd(calendar: Calendar): void {
    const unixMs = this.#unixUs() / US_PER_MS;
    const { endMs, nextEndMs } = calendar.around(unixMs);
    const endUs = (unixMs < endMs ? endMs : nextEndMs) * US_PER_MS;
    this.#countsExpireUs = Math.max(this.#countsExpireUs, endUs + KEPT_US);
  }

  #dropExpired(): void {
    if (!this.#logs.isEmpty && this.#nowUs() >= this.#logsExpireUs) this.#logs.clear();
    if (!this.#counts.isEmpty && this.#unixUs() >= this.#countsExpireUs) this.#counts.clear();
  }
}

/** The decision of this replica's own counts, for a charge that the store did not decide. */
function degraded(uncounted: Extract<Decision, { outcome: 'uncounted' }>, own: Decision): Decision {
  if (own.outcome !== 'denied') return uncounted;
  return { ...own, degraded: uncounted.reason };
}

/**
 * What counts points. A store knows keys, limits and costs; it knows nothing of HTTP, Accounts or prices.
 */
export interface Store {
  /**
   * Spends `cost` points in every bucket of the charge, or in none when one of them has no room.
   * Never rejects: a store that cannot answer says `uncounted`, and its caller serves the request anyway.
   */
  charge(charge: Charge): Promise<Decision>;

  /** What `charge` would answer, without spending anything. */
  peek(charge: Charge): Promise<Decision>;

  /** Releases connections and timers; charges still under way end as `uncounted`. */
  close(): Promise<void>;
}

/** One request's price, and the buckets that must all have room for it. */
export interface Charge {
  readonly buckets: readonly BucketCharge[];
  /** Points, an integer of at least 1. */
  readonly cost: number;
  /** Length of the sliding window, in whole seconds. */
  readonly windowSeconds: number;
}

export interface BucketCharge {
  /** The whole key in the store, prefix and hash tag included: see keys.ts. */
  readonly key: string;
  /** Points per window. It travels with each charge, so a changed limit holds at once on every replica. */
  readonly limit: number;
  /** A shadow bucket counts what fits and reports what it would have refused, but refuses nothing. */
  readonly shadow?: boolean;
}

/** A bucket right after the decision. Times are in microseconds, measured from the store's own clock. */
export interface BucketState {
  /** Points left in the current window, never negative. */
  readonly remaining: number;
  /** Until the bucket is full again; 0 for an untouched bucket. */
  readonly resetAfterUs: number;
  /** Until this cost fits this bucket; 0 when it fitted. */
  readonly retryAfterUs: number;
}

/** `buckets` follow the order of the charge. A denial is a value, not an error. */
export type Decision =
  | { readonly outcome: 'admitted'; readonly buckets: readonly BucketState[] }
  | { readonly outcome: 'denied'; readonly buckets: readonly BucketState[] }
  | { readonly outcome: 'uncounted'; readonly reason: UncountedReason };

/** Why no answer came from the store; the `reason` label of `weir_degraded_total`. */
export type UncountedReason = 'deadline' | 'disconnected' | 'error' | 'closed';

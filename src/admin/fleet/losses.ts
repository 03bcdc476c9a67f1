/** A replica that was lost, or that lost the store. */
export interface Loss {
  readonly what: 'replica' | 'store';
  /** The host name of the replica. */
  readonly replica: string;
  /** Unix time by the clock of Redis. */
  readonly atMs: number;
  /** Null until it is back. */
  readonly backAtMs: number | null;
}

/** What was lost, and nobody has seen yet. */
export interface Losses {
  /** Newest first, at most 20. */
  readonly latest: readonly Loss[];
  readonly count: number;
  /** The time up to which a reader has seen what was recorded. */
  readonly untilMs: number;
}

export const NO_LOSSES: Losses = { latest: [], count: 0, untilMs: 0 };

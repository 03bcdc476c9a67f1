/** What the journal has of some buckets: for each key a text, as lua/put-back.lua reads it. */
export interface PresentCounts {
  readonly keys: readonly string[];
  readonly texts: readonly string[];
}

/** The number of buckets and points that were put back. */
export interface Recovered {
  readonly buckets: number;
  readonly points: number;
}

/** A store during a recovery. */
export interface Recovering {
  putBack(counts: PresentCounts): Promise<Recovered>;
  /** Takes out the keys of some buckets that charges were refused for. */
  wanted(): Promise<readonly string[]>;
  /** Lets these buckets count before the recovery ends. */
  admit(keys: readonly string[]): Promise<void>;
}

/** @param server the one that has lost something, as `LossListener.arrived` names it; empty in a Cluster */
export type Work = (store: Recovering, server: string) => Promise<void>;

/** The store whose counts are put back. */
export interface JournaledCounts {
  /** Resolves when all charges that were sent before are answered and recorded, or have failed. */
  answered(): Promise<void>;
  /** Rejects if the store cannot be reached. */
  isComplete(): Promise<boolean>;
  /**
   * Takes what the store has lost, or all of it where that is in doubt, runs `work`, and lets the store count there again. Returns false if
   * nothing was lost. Rejects if the store cannot be reached, or has lost something again.
   *
   * @param onAnswered called whenever the store has answered some of its calls
   */
  recover(recovery: string, isInDoubt: boolean, work: Work, onAnswered: () => void): Promise<boolean>;
  /** Takes what the store has lost, so that no recovery that has begun can end there. Returns the groups of keys that were taken. */
  overtake(recovery: string): Promise<readonly number[]>;
  /** Has charges of these groups count by what the store has, until `insist` is called. */
  goOn(groups: readonly number[]): void;
  /** Has charges count only where nothing is lost, as at first. */
  insist(): void;
}

/** Is notified when the store may have lost counts. */
export interface LossListener {
  /** A mark is wrong, or may be. */
  missing(): void;
  /** Charges go to the server with this id from now on. Not called in a Cluster. */
  arrived(server: string): void;
  /** The connection for charges ended. */
  left(): void;
}

import type { DroppedReason, Settled, UncountedReason } from './store.ts';

export type BreakerState = 'closed' | 'open' | 'half-open';

/** The settings of a Redis on which the counter's guarantees depend. A journal alone needs the replication id. */
export const SERVER_SETTINGS = ['maxmemory-policy', 'min-replicas', 'replication-id'] as const;

export type ServerSetting = (typeof SERVER_SETTINGS)[number];

/** Receives a store's events; the metrics implement it. Calls must be quick and must not throw. */
export interface StoreObserver {
  /**
   * A charge of `points` got no decision: its request is served uncounted, or rejected, as configured. `problem` is the store's error
   * for it or for its call. Calls that charge nothing and end with an error are reported with 0 points.
   */
  uncounted(reason: UncountedReason, points: number, problem?: string): void;
  /** A reply came after its deadline: these `points` were counted although their requests were treated as uncounted. */
  answeredLate(points: number): void;
  /** The connection ended before the reply to charges of these `points`: the store may have counted them. */
  unanswered(points: number): void;
  /** A charge was denied from the cache, without a call. */
  deniedFromMemory(): void;
  /** A script call was answered in time: how many charges it held, how long it took, and how many of the charges got no decision. */
  called(charges: number, roundTripUs: number, uncounted: number): void;
  /** A settlement was answered. `overPoints` were added above the limit of one bucket, the highest number of all. */
  settled(outcome: Exclude<Settled['outcome'], 'dropped'>, overPoints: number): void;
  /** A settlement was given up. */
  settlementDropped(reason: DroppedReason): void;
  /** A breaker changed. A Cluster has one for each of its masters, named by `route`; others have one. */
  breakerChanged(route: string, state: BreakerState): void;
  /** The connection, or one to a Cluster's node, failed or was refused. */
  connectionFailed(reason: UncountedReason, message: string): void;
  /** A server's setting was read; `risk` describes what is wrong with it. */
  settingChecked(route: string, setting: ServerSetting, risk: string | undefined): void;
}

export const silentObserver: StoreObserver = {
  uncounted() {},
  answeredLate() {},
  unanswered() {},
  deniedFromMemory() {},
  called() {},
  settled() {},
  settlementDropped() {},
  breakerChanged() {},
  connectionFailed() {},
  settingChecked() {},
};

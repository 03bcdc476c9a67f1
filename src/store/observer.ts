import type { UncountedReason } from './store.ts';

export type BreakerState = 'closed' | 'open' | 'half-open';

/** A setting of a Redis on which the counter's guarantees depend. */
export type ServerSetting = 'maxmemory-policy' | 'min-replicas';

/** What a store lets the world see of its work; the metrics implement it. Calls must be quick and must not throw. */
export interface StoreObserver {
  /** A charge of `points` got no decision: its request goes on uncounted, or is rejected, as the gateway is set. */
  uncounted(reason: UncountedReason, points: number): void;
  /** An answer came after its deadline: these `points` were counted although their requests were told otherwise. */
  answeredLate(points: number): void;
  /** The connection ended before the answer to charges of these `points`: the store may have counted them. */
  unanswered(points: number): void;
  /** A charge was denied by what an earlier answer taught, without a call. */
  deniedFromMemory(): void;
  /** A script call came back in time: how many decisions it held, and how long it took. */
  called(decisions: number, roundTripUs: number): void;
  /** A breaker changed. A Cluster has one for each of its masters, named by `route`; others have one. */
  breakerChanged(route: string, state: BreakerState): void;
  /** The connection, or one to a Cluster's node, failed or was refused. */
  connectionFailed(reason: UncountedReason, message: string): void;
  /** A server's setting was read at connecting; `risk` says what is wrong with it. */
  settingChecked(route: string, setting: ServerSetting, risk: string | undefined): void;
}

export const silentObserver: StoreObserver = {
  uncounted() {},
  answeredLate() {},
  unanswered() {},
  deniedFromMemory() {},
  called() {},
  breakerChanged() {},
  connectionFailed() {},
  settingChecked() {},
};

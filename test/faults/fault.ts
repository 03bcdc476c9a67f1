import type { StoreSettings } from '../../src/store/open-store.ts';
import type { UncountedReason } from '../../src/store/store.ts';

/** One way for a store to fail, and to come back. */
export interface Fault {
  readonly name: string;
  /** The reasons that requests may show while it lasts; the first ones must be seen. Empty if requests are unaffected. */
  readonly reasons: readonly UncountedReason[];
  /** Others that may come with it, at its edges. */
  readonly alsoPossible?: readonly UncountedReason[];
  start(): Promise<FaultyStore>;
}

export interface FaultyStore {
  readonly settings: Exclude<StoreSettings, { kind: 'memory' }>;
  break(): Promise<unknown>;
  repair(): Promise<unknown>;
  stop(): Promise<unknown>;
}

/** The default of the settings, which these tests measure. */
export const DEADLINE_MS = 25;

/**
 * Requests are counted again by then, after the store could answer. The aim is half a second, which test/store/refused-connections-back-off and a unit test of the breaker show by the delays;
 * in RESULTS.md is how long it took. A busy machine pauses for longer than that.
 */
export const RECOVERED_MS = 5_000;

import type { BreakerState } from '../../store/observer.ts';
import type { RefusedRequest } from './refusals.ts';

/** Seconds of history that a replica publishes. */
export const PULSE_SECONDS = 60;

/** What is counted per second. */
export const SERIES = ['requests', 'points', 'refused', 'degraded', 'failed'] as const;

export type Counts = Readonly<Record<(typeof SERIES)[number], number>>;

/** What one second came to at one replica. */
export interface Second {
  /** In the order of `SERIES`. */
  readonly counts: readonly number[];
  /** Requests by duration, in the buckets of the metrics; without the zeros at the end. */
  readonly durations: readonly number[];
}

export interface StoreHealth {
  readonly kind: string;
  readonly breaker: BreakerState;
  /** Redis settings that allow limits to be exceeded. */
  readonly unsafeSettings: number;
  /** The 99th percentile of its calls in the last ten seconds; null without calls. */
  readonly p99Ms: number | null;
}

/** What a replica publishes about itself every second. */
export interface Pulse {
  /** Version of this format. A replica ignores the pulses of other versions. */
  readonly format: 1;
  /** Host name of the replica. */
  readonly name: string;
  /** Unix time in milliseconds. */
  readonly startedAtMs: number;
  readonly isReady: boolean;
  /** The version of the limits in force: that of `weir_limits_info`. */
  readonly limits: string;
  /** How many live limits are in force. */
  readonly liveLimits: number;
  readonly store: StoreHealth;
  /** Since the replica started. */
  readonly totals: Counts;
  /** Unix second of the last of `seconds`, by the clock of the replica. */
  readonly second: number;
  /** The last complete seconds, oldest first. */
  readonly seconds: readonly Second[];
  /** The most recent refusals, newest first. */
  readonly refusals: readonly RefusedRequest[];
}

/** The pulse within a published summary; undefined where there is none that this version can read. */
export function readPulse(published: unknown): Pulse | undefined {
  const pulse = (published as { readonly pulse?: Pulse } | null)?.pulse;
  return pulse?.format === 1 && isPulse(pulse) ? pulse : undefined;
}

function isPulse({ name, limits, store, totals, second, seconds, refusals }: Pulse): boolean {
  const areTexts = [name, limits, store?.kind, store?.breaker].every((text) => typeof text === 'string');
  const areSeconds = seconds?.every?.(
    ({ counts, durations }) => isNumbers(counts) && counts.length === SERIES.length && isNumbers(durations),
  );
  return (
    areTexts &&
    Number.isFinite(second) &&
    isNumbers(SERIES.map((one) => totals?.[one])) &&
    areSeconds === true &&
    Array.isArray(refusals)
  );
}

function isNumbers(values: readonly unknown[]): boolean {
  return values?.every?.(Number.isFinite);
}

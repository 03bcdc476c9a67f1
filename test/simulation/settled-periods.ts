/** What lua/settle.lua leaves of the count of a period, and of slots, as a model. */
import type { Span } from '../../src/domain/limits/calendar.ts';
import type { SettledState } from '../../src/store/store.ts';

export interface Count {
  readonly points: number;
  readonly atSeconds: number;
}

export interface SeenPeriod {
  readonly nowUs: number;
  /** 0 if it is unknown. */
  readonly chargedUs: number;
  readonly limit: number;
  /** By how much the settlement changes it. */
  readonly more: number;
}

export interface LeftPeriod {
  /** Undefined if it is left as it was, and 'deleted' if nothing is left. */
  readonly count: Count | 'deleted' | undefined;
  readonly lifeMs: number;
  /** Undefined if it cannot be read. */
  readonly state: SettledState | undefined;
}

const US_PER_SECOND = 1_000_000;
/** The integers below are exact in Lua. */
export const MOST_COUNTED = 2 ** 53;
const KEPT_MS = 900_000;
export const UNREAD: LeftPeriod = { count: undefined, lifeMs: 0, state: undefined };

export function settledPeriod(before: Count | undefined, span: Span, seen: SeenPeriod): LeftPeriod {
  const { nowUs, limit, more } = seen;
  const { points, atSeconds } = before ?? { points: 0, atSeconds: 0 };
  const [firstUs, secondUs, lastUs] = [1_000 * span.startMs, 1_000 * span.endMs, 1_000 * span.nextEndMs];
  const atUs = atSeconds * US_PER_SECOND;
  if (nowUs < firstUs || Math.max(nowUs, atUs) >= lastUs || points > MOST_COUNTED) return UNREAD;
  const [startUs, endUs] = Math.max(nowUs, atUs) >= secondUs ? [secondUs, lastUs] : [firstUs, secondUs];
  const counted = atUs >= startUs ? points : 0;
  const settled = pointsAfter(counted, startUs, seen);
  const changed = {
    points: settled,
    atSeconds: Math.floor((more > 0 ? Math.max(atUs, nowUs) : atUs) / US_PER_SECOND),
  };
  return {
    count: settled === counted ? undefined : settled === 0 ? 'deleted' : changed,
    lifeMs: Math.ceil((endUs - nowUs) / 1_000) + KEPT_MS,
    state: {
      remaining: Math.max(0, limit - settled),
      resetAfterUs: endUs - nowUs,
      overPoints: Math.max(0, Math.min(settled - counted, settled - limit)),
    },
  };
}

/** Points are given back in the period of their charge only. */
function pointsAfter(counted: number, startUs: number, { more, chargedUs }: SeenPeriod): number {
  if (more > 0) return Math.min(MOST_COUNTED, counted + more);
  if (chargedUs === 0) return Math.max(0, counted + more);
  return chargedUs >= startUs && counted + more >= 0 ? counted + more : counted;
}

export interface Lease {
  /** 16 characters. */
  readonly id: string;
  readonly held: number;
}

/** Slots of no replica have an id by the time at which they end, rounded up to a second, or to ten if they are held for over a minute. */
export function idOfHeld(chargedUs: number, heldMs: number): string {
  const grainS = heldMs > 60_000 ? 10 : 1;
  const endS = Math.ceil((chargedUs / 1_000 + heldMs) / (1_000 * grainS)) * grainS;
  return `~${String(endS).padStart(15, '0')}`;
}

export function leasesAfter(before: readonly Lease[], id: string): readonly Lease[] {
  const freed = before.find((lease) => lease.id === id);
  return before.map((lease) => (lease === freed ? { id, held: Math.max(0, lease.held - 1) } : lease));
}

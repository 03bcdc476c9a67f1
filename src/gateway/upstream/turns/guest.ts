/** What turns at an upstream are about: who asks for a place, and how many there are. */
import type { Traffic } from '../../../domain/operation.ts';

/** Why a request that waits gets no turn: too many wait, it has waited for too long, or the upstream is closed. */
export type TurnedAway = 'crowded' | 'late' | 'closed';

/** A request that asks for a place at an upstream. */
export interface Guest {
  readonly traffic: Traffic;
  /** An Account, or the address of a client. */
  readonly payerId: string;
  /** Whether it asks for a tunnel, which keeps its place until it closes. */
  readonly isTunnel: boolean;
  /** It waited, and has a place now. */
  onTurn(waitedMs: number): void;
  /** It waited, and does not wait any more. */
  onTurnedAway(reason: TurnedAway): void;
}

export interface TurnSettings {
  readonly connections: number;
  readonly maxWaiting: number;
  readonly publicPercent: number;
  readonly unauthenticatedPercent: number;
  readonly tunnelPercent: number;
  readonly reservePercent: number;
  readonly queueTimeoutMs: number;
  /** Whether the number of places follows the upstream's latency. `connections` is the most either way. */
  readonly concurrency: 'fixed' | 'adaptive';
}

/** What one kind of traffic may have. */
export interface GroupLimits {
  /** Its part of the places. */
  readonly percent: number;
  /** Most of its requests at the upstream. */
  readonly maxPresent: number;
  /** Most of its requests that wait. With 0, a request waits only if the group has less than its share of the places, waiting ones included. */
  readonly maxWaiting: number;
  readonly maxTunnels: number;
}

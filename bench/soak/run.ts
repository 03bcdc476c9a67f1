import type { Seen } from './requests.ts';

export interface Run {
  readonly date: string;
  readonly hardware: string;
  readonly node: string;
  /** Requests per second. */
  readonly rate: number;
  readonly seconds: number;
  readonly samples: Sample[];
  readonly events: Event[];
  /** Undefined while it runs. */
  ended: Ending | undefined;
}

export interface Ending {
  readonly thresholdsKept: boolean;
  /** Points of this month: of all requests that were answered and counted, in the invoices, and by Redis, of the busiest Organization. */
  readonly points: { readonly answered: number; readonly invoiced: number };
  readonly busiest: { readonly invoiced: number; readonly inRedis: number };
  /** Slots that are still taken although no request runs. */
  readonly slots: number;
}

/** The state at one moment, and what clients saw since the one before. */
export interface Sample {
  readonly seconds: number;
  /** The machine's load average over a minute. */
  readonly load: number;
  readonly redisMb: number;
  /** The first one stays for the whole run. */
  readonly replicas: readonly {
    readonly name: string;
    readonly residentMb: number;
    readonly handles: number;
  }[];
  /** What the replica that stays has in its heap after a forced collection. */
  readonly heapMb: number;
  readonly seen: Omit<Seen, 'failedAtMs'>;
  /** When checks failed, in seconds of the run. */
  readonly failedAtSeconds: readonly number[];
}

export type EventKind = 'reload' | 'deploy' | 'failover' | 'kill' | 'loss';

export interface Event {
  readonly kind: EventKind;
  readonly seconds: number;
  tookSeconds: number;
}

/** What a killed replica had begun fails, and what is sent to it until the entry notices. */
const AFTER_A_KILL_SECONDS = 2;

/** When checks failed although no replica had just been killed, in seconds. */
export function unexplainedFailures({ samples, events }: Pick<Run, 'samples' | 'events'>): number[] {
  const killedAt = events.filter(({ kind }) => kind === 'kill').map(({ seconds }) => seconds);
  const isExplained = (at: number) =>
    killedAt.some((killed) => at >= killed && at < killed + AFTER_A_KILL_SECONDS);
  return samples.flatMap(({ failedAtSeconds }) => failedAtSeconds.filter((at) => !isExplained(at)));
}

/**
 * Whether all that clients were charged is in the invoices, the busiest Organization's also in Redis, and no slot is left. Each killed
 * replica may take what it had charged in its last second with it: at most one second of the whole load. Redis may also have counted
 * requests that were served uncounted, because its answer came too late. Each of them costs the busiest Organization one point.
 */
export function isAllCounted({
  ended,
  events,
  rate,
  samples,
}: Pick<Run, 'ended' | 'events' | 'rate' | 'samples'>): boolean {
  if (ended === undefined) return false;
  const { points, busiest, slots } = ended;
  const most = rate * events.filter(({ kind }) => kind === 'kill').length;
  const late = samples.reduce((total, { seen }) => total + seen.degraded, 0);
  const isInvoiced = busiest.invoiced > 0 && Math.abs(points.answered - points.invoiced) <= most;
  const moreInRedis = busiest.inRedis - busiest.invoiced;
  return isInvoiced && slots === 0 && moreInRedis >= -most && moreInRedis <= most + late;
}

import { median } from '../measure/lineup.ts';
import type { Results } from '../results.ts';

const US_PER_SECOND = 1_000_000;

/** Medians over the rounds, in the contestants' order; what is missing was not measured. */
export interface Row {
  readonly name: string;
  readonly limiter: string;
  readonly requestsPerSecond?: number;
  readonly refusedPerSecond?: number;
  /** Of one core that the gateway's processes have for themselves: from their CPU time per request. */
  readonly perCore?: number;
  readonly refusedPerCore?: number;
  readonly gatewayCpuUs?: number;
  readonly redisCpuUs?: number;
  /** Added to the upstream's own. */
  readonly addedMs?: { readonly p50: number; readonly p99: number; readonly p999: number };
  readonly worstWindow?: number;
  /** Admitted over the whole flood, in limits; an exact limiter admits 2. */
  readonly admittedShare?: number;
  readonly atRestMb?: number;
  readonly connectedMb?: number;
}

export function rowsOf(results: Results): Row[] {
  return results.contestants
    .filter(({ missing }) => missing === undefined)
    .map(({ name, limiter }) => ({
      name,
      limiter,
      ...throughputOf(results, name),
      ...refusedOf(results, name),
      ...latencyOf(results, name),
      ...windowOf(results, name),
      ...memoryOf(results, name),
    }));
}

function throughputOf({ throughput }: Results, name: string): Partial<Row> {
  const rounds = throughput?.[name];
  if (rounds === undefined) return {};
  return {
    perCore: US_PER_SECOND / median(rounds.map((round) => round.gatewayCpuUs)),
    requestsPerSecond: median(rounds.map((round) => round.requestsPerSecond)),
    gatewayCpuUs: median(rounds.map((round) => round.gatewayCpuUs)),
    redisCpuUs: median(rounds.map((round) => round.redisCpuUs)),
  };
}

function refusedOf({ refused }: Results, name: string): Partial<Row> {
  const rounds = refused?.[name];
  return rounds === undefined
    ? {}
    : {
        refusedPerCore: US_PER_SECOND / median(rounds.map((round) => round.gatewayCpuUs)),
        refusedPerSecond: median(rounds.map((round) => round.requestsPerSecond * round.refused)),
      };
}

function latencyOf({ latency }: Results, name: string): Partial<Row> {
  const rounds = latency?.contestants[name];
  if (latency === undefined || rounds === undefined) return {};
  const added = (percentile: 'p50Ms' | 'p99Ms' | 'p999Ms') =>
    median(rounds.map((round) => round[percentile])) -
    median(latency.upstream.map((round) => round[percentile]));
  return { addedMs: { p50: added('p50Ms'), p99: added('p99Ms'), p999: added('p999Ms') } };
}

function windowOf({ window }: Results, name: string): Partial<Row> {
  const rounds = window?.[name];
  if (rounds === undefined) return {};
  return {
    worstWindow: Math.max(...rounds.map((round) => round.worst)),
    admittedShare: median(rounds.map((round) => round.admittedShare)),
  };
}

function memoryOf({ memory }: Results, name: string): Partial<Row> {
  const figures = memory?.[name];
  return figures === undefined || typeof figures === 'string' ? {} : figures;
}

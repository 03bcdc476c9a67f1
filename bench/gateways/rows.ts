import { median } from '../lab/turns.ts';
import type { Results } from './results.ts';

const US_PER_SECOND = 1_000_000;

/** Medians over the rounds of a contestant; undefined where nothing was measured. */
export interface Row {
  readonly name: string;
  readonly limiter: string;
  readonly requestsPerSecond: number | undefined;
  readonly refusedPerSecond: number | undefined;
  /** Of one core that the gateway's processes have for themselves: from their CPU time per request. */
  readonly perCore: number | undefined;
  readonly refusedPerCore: number | undefined;
  readonly gatewayCpuUs: number | undefined;
  readonly redisCpuUs: number | undefined;
  /** Percentiles that are added to the upstream's own. */
  readonly addedP50Ms: number | undefined;
  readonly addedP99Ms: number | undefined;
  readonly addedP999Ms: number | undefined;
  /** The worst of all rounds. */
  readonly worstWindow: number | undefined;
  /** Admitted over the whole flood, in limits; an exact limiter admits 2. */
  readonly admittedShare: number | undefined;
  readonly atRestMb: number | undefined;
  readonly connectedMb: number | undefined;
}

/** In the contestants' order, without those that took no part. */
export function rowsOf(results: Results): Row[] {
  return results.contestants
    .filter(({ missing }) => missing === undefined)
    .map(({ name, limiter }) => rowOf(results, name, limiter));
}

function rowOf(
  { throughput, refused, latency, window, memory }: Results,
  name: string,
  limiter: string,
): Row {
  const [forwarding, refusing, windows] = [throughput?.[name], refused?.[name], window?.[name]];
  const added = (percentile: 'p50Ms' | 'p99Ms' | 'p999Ms') => {
    const own = middle(latency?.contestants[name], (round) => round[percentile]);
    const upstream = middle(latency?.upstream, (round) => round[percentile]);
    return own === undefined || upstream === undefined ? undefined : own - upstream;
  };
  const figures = memory?.[name];
  const megabytes = typeof figures === 'object' ? figures : undefined;
  return {
    name,
    limiter,
    requestsPerSecond: middle(forwarding, (round) => round.requestsPerSecond),
    refusedPerSecond: middle(refusing, (round) => round.requestsPerSecond * round.refused),
    perCore: middle(forwarding, (round) => US_PER_SECOND / round.gatewayCpuUs),
    refusedPerCore: middle(refusing, (round) => US_PER_SECOND / round.gatewayCpuUs),
    gatewayCpuUs: middle(forwarding, (round) => round.gatewayCpuUs),
    redisCpuUs: middle(forwarding, (round) => round.redisCpuUs),
    addedP50Ms: added('p50Ms'),
    addedP99Ms: added('p99Ms'),
    addedP999Ms: added('p999Ms'),
    worstWindow: windows && Math.max(...windows.map((round) => round.worst)),
    admittedShare: middle(windows, (round) => round.admittedShare),
    atRestMb: megabytes?.atRestMb,
    connectedMb: megabytes?.connectedMb,
  };
}

function middle<Round>(
  rounds: readonly Round[] | undefined,
  figure: (round: Round) => number,
): number | undefined {
  return rounds && median(rounds.map(figure));
}

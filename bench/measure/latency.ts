import { type ArrivalResult, arrivals } from '../load/arrivals.ts';
import { PATH } from '../load/wrk.ts';
import { ACCOUNTS, type Bench, FAR_ABOVE, lineupOf } from './bench.ts';
import { alternate } from './lineup.ts';
import { warmUp } from './warm-up.ts';

/** Enough that a free one is there for every bunch of requests while the gateway keeps up. */
const CONNECTIONS = 128;

export interface Latency {
  /** Requests per second, the same for all. */
  readonly rate: number;
  /** The upstream without anything before it: what the others add is measured from here. */
  readonly upstream: readonly ArrivalResult[];
  readonly contestants: Record<string, ArrivalResult[]>;
}

/** Latencies at one fixed arrival rate. */
export async function measureLatency(bench: Bench, rate: number): Promise<Latency> {
  const { cores, plan, say, upstream } = bench;
  const at = (port: number, seconds: number) =>
    arrivals(
      {
        port,
        path: PATH,
        connections: CONNECTIONS,
        accounts: ACCOUNTS,
        warmUpSeconds: plan.warmUpSeconds,
        phases: [{ seconds, rate }],
        findsWorstWindow: false,
      },
      cores?.load,
    );
  const lineup = await lineupOf(bench, { name: 'latency', limit: FAR_ABOVE, accounts: ACCOUNTS });
  try {
    say(`latency at ${rate} requests/s: warming up`);
    await warmUp(bench, lineup, ACCOUNTS);
    const direct: ArrivalResult[] = [];
    const contestants: Record<string, ArrivalResult[]> = {};
    for (let round = 1; round <= plan.rounds; round++) {
      direct.push(await at(upstream.port, plan.seconds));
      const figures = await alternate(lineup, 1, ({ port }) => at(port, plan.seconds), say);
      for (const [name, results] of Object.entries(figures)) {
        contestants[name] = [...(contestants[name] ?? []), ...results];
      }
    }
    return { rate, upstream: direct, contestants };
  } finally {
    await lineup.stop();
  }
}

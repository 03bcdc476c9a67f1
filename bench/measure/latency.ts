import { type ArrivalResult, arrivals } from '../load/arrivals.ts';
import { PATH } from '../load/wrk.ts';
import { ACCOUNTS, type Bench, FAR_ABOVE, lineupOf } from './bench.ts';
import { alternate } from './lineup.ts';
import { warmUp } from './warm-up.ts';

/** Enough that a free one is there for every bunch of requests while the gateway keeps up. */
const CONNECTIONS = 128;

export interface Latency {
  /** Requests per second for every contestant that `ownRates` does not name. */
  readonly rate: number;
  /** Lower rates, by contestant: half of its own capacity, because above it every queue grows without end. */
  readonly ownRates: Readonly<Record<string, number>>;
  /** The upstream without anything before it: what the others add is measured from here. */
  readonly upstream: readonly ArrivalResult[];
  readonly contestants: Record<string, ArrivalResult[]>;
}

/** The rates of a measurement, without its results. */
export type ArrivalRates = Pick<Latency, 'rate' | 'ownRates'>;

/** Latencies at fixed arrival rates. */
export async function measureLatency(bench: Bench, { rate, ownRates }: ArrivalRates): Promise<Latency> {
  const { cores, plan, say, upstream } = bench;
  const at = (port: number, ownRate: number) =>
    arrivals(
      {
        port,
        path: PATH,
        connections: CONNECTIONS,
        accounts: ACCOUNTS,
        warmUpSeconds: plan.warmUpSeconds,
        phases: [{ seconds: plan.seconds, rate: ownRate }],
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
      direct.push(await at(upstream.port, rate));
      const figures = await alternate(
        lineup,
        1,
        ({ port }, { name }) => at(port, ownRates[name] ?? rate),
        say,
      );
      for (const [name, results] of Object.entries(figures)) {
        contestants[name] = [...(contestants[name] ?? []), ...results];
      }
    }
    return { rate, ownRates, upstream: direct, contestants };
  } finally {
    await lineup.stop();
  }
}

import { arrivals } from '../load/arrivals.ts';
import { PATH } from '../load/wrk.ts';
import { type Bench, lineupOf } from './bench.ts';
import { alternate } from './lineup.ts';

/** Requests per second and Account. */
const LIMIT = 200;

/**
 * The two patterns that windows and buckets are weak against. A flood after a pause meets a bucket that is full
 * and refilling; one request, then a flood across the end of the window that it opened, meets a fixed window twice.
 */
const PHASES = [
  { seconds: 0.05, rate: 20 },
  { seconds: 0.7, rate: 0 },
  { seconds: 1.75, rate: 4 * LIMIT },
];

export interface WorstWindow {
  /** Admitted in the worst second, divided by the limit: 1 is exact, above 1 is too much. */
  readonly worst: number;
  /** Of what was sent, what was admitted. */
  readonly admitted: number;
  /** What was admitted and counted, divided by the limit. */
  readonly admittedShare: number;
  /** Served without having been counted, because Redis did not answer in time. */
  readonly degraded: number;
  readonly sent: number;
}

/** One Account that asks for four times its limit: how much of that one second lets through. */
export async function measureWindow(bench: Bench): Promise<Record<string, WorstWindow[]>> {
  const { cores, plan, say } = bench;
  const lineup = await lineupOf(
    bench,
    { name: 'window', limit: LIMIT, accounts: 1 },
    ({ hasLimiter }) => hasLimiter,
  );
  try {
    return await alternate(
      lineup,
      plan.rounds,
      async ({ port }) => {
        const options = {
          port,
          path: PATH,
          connections: 32,
          accounts: 1,
          warmUpSeconds: 0,
          phases: PHASES,
          findsWorstWindow: true,
        };
        const { admitted, degraded, sent, worstWindow } = await arrivals(options, cores?.load);
        return {
          worst: worstWindow / LIMIT,
          admittedShare: (admitted - degraded) / LIMIT,
          admitted,
          degraded,
          sent,
        };
      },
      say,
    );
  } finally {
    await lineup.stop();
  }
}

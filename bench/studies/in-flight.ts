import { type Bench, CONNECTIONS } from '../lab/bench.ts';
import { type Cost, median } from '../lab/turns.ts';
import { table, thousands } from '../report/section.ts';
import { measurePair } from './measure-pair.ts';

/** Each request in flight is of another Account, or all are of a few. */
const ACCOUNTS = [1_000, 10];
/** Long enough that every charge is counted, even beside other work. */
const settings = { store: { deadlineMs: 1_000 } };
const CONCURRENT = { 'account-in-flight': { per: 'account', concurrent: 1_000 } };
/** How much more than without the limit is allowed: the aims of docs/limits.md. */
const MOST = [
  ['gateway', 'gatewayUs', 1.1],
  ['redis', 'redisUs', 1.6],
] as const;

/**
 * Measures what a limit on requests in flight costs besides two buckets, with its releases and renewals. Two gateways on one core, each
 * with a Redis of its own, take turns of a second. Then two others do, because two processes with the same work differ by some percent.
 */
export async function measureInFlight(bench: Bench): Promise<readonly string[]> {
  const pairs = bench.either(6, 2);
  const rows: string[][] = [];
  for (const accounts of ACCOUNTS) {
    const without: Cost[] = [];
    const limited: Cost[] = [];
    for (let pair = 0; pair < pairs; pair++) {
      const sides = { without: { settings }, with: { settings, limits: CONCURRENT } };
      const seen = await measurePair(bench, sides, { accounts });
      without.push(...seen.without);
      limited.push(...seen.with);
    }
    for (const [part, figure, most] of MOST) {
      const [before, after] = [without.map((cost) => cost[figure]), limited.map((cost) => cost[figure])];
      // Of neighbouring seconds, because a busy machine changes its pace.
      const ratio = median(before.map((us, turn) => (after[turn] ?? Number.NaN) / us));
      if (ratio > most) process.exitCode = 1;
      const figures = [median(before).toFixed(1), median(after).toFixed(1), percent(ratio), percent(most)];
      rows.push([thousands(accounts), part, ...figures]);
    }
  }
  return [
    `Forwarded requests on ${CONNECTIONS} connections, each charged to two buckets in Redis, and with or without a slot of a limit on requests in`,
    `flight. CPU of a request in microseconds: medians of ${pairs} pairs of processes, ${bench.rounds} seconds in turn each, and of the ratios of neighbouring seconds.`,
    '',
    ...table(['Accounts:', '', 'two buckets:', 'and a slot:', 'more:', 'aim, at most:'], rows),
  ];
}

function percent(ratio: number): string {
  return `${((ratio - 1) * 100).toFixed(0)} %`;
}

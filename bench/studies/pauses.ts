import type { Running } from '../contestants/contestant.ts';
import { fastifyProxy } from '../contestants/fastify.ts';
import { weir } from '../contestants/weir.ts';
import type { Bench } from '../lab/bench.ts';
import { median } from '../lab/turns.ts';
import { type ArrivalResult, arrivals } from '../load/arrivals.ts';
import { PATH } from '../load/wrk.ts';
import { table, thousands } from '../report/section.ts';

const PLAIN = 'plain';
const MANY_ACCOUNTS = 200_000;
/** Of the requests that the plain proxy can take, this share is sent. */
const LOAD = 0.5;
/** Of what the plain proxy adds. */
const AIM = 1.3;

interface Side {
  readonly name: string;
  readonly running: Running;
  /** Requests so far, so that each round goes on with the next Account. */
  sent: number;
}

/**
 * How long the slowest requests take at half of what the plain proxy can do, with one Account and with many, in memory and with Redis.
 * What the upstream takes alone is subtracted.
 */
export async function measurePauses(bench: Bench): Promise<readonly string[]> {
  const rows: string[][] = [];
  for (const accounts of [1, bench.either(MANY_ACCOUNTS, 20_000)])
    rows.push(...(await measureAccounts(bench, accounts)));
  return [
    `An open loop: requests are sent at half of the rate that the plain proxy can take, and timed from when they are due. ${bench.rounds} rounds of`,
    `${bench.seconds} s in turn, after a request of each Account. Milliseconds that each proxy adds to what the upstream takes alone: medians of the`,
    'rounds, and the slowest round. The ratio is the median over neighbouring rounds.',
    '',
    ...table(
      ['Accounts:', 'requests/s:', '', 'p50:', 'p99:', 'slowest:', 'p99.9:', 'p99 ÷ plain:', `aim, at most:`],
      rows,
    ),
  ];
}

async function measureAccounts(bench: Bench, accounts: number): Promise<readonly string[][]> {
  const contestants = [
    [PLAIN, fastifyProxy('none')],
    ['memory', weir('memory')],
    ['Redis', weir('redis')],
  ] as const;
  const sides: Side[] = [];
  for (const [name, contestant] of contestants)
    sides.push({
      name,
      running: await bench.start(contestant, `${name} ${accounts}`, { accounts }),
      sent: 0,
    });
  // The highest of all loads: a single one may be slowed by something else on the machine.
  let capacity = 0;
  for (const side of sides) {
    const untilMs = performance.now() + bench.either(6, 2) * 1_000;
    while (side.sent < accounts || performance.now() < untilMs) {
      const { requests, us } = await bench.strictLoad(side.running, {
        accounts,
        before: side.sent % accounts,
      });
      side.sent += requests;
      if (side.name === PLAIN) capacity = Math.max(capacity, (requests * 1_000_000) / us);
    }
  }
  const rate = Math.round(capacity * LOAD);
  const direct = { port: (await bench.upstream()).port, pids: [], stop: async () => undefined };
  const seen = await bench.inTurn([{ name: 'upstream', running: direct, sent: 0 }, ...sides], (side) =>
    arrive(bench, side, accounts, rate),
  );
  for (const { running } of sides) await running.stop();
  return rowsOf(seen, accounts, rate);
}

async function arrive(bench: Bench, side: Side, accounts: number, rate: number): Promise<ArrivalResult> {
  const result = await arrivals(
    {
      port: side.running.port,
      path: PATH,
      connections: 128,
      accounts,
      before: side.sent % accounts,
      warmUpSeconds: 1,
      phases: [{ seconds: bench.seconds, rate }],
      findsWorstWindow: false,
    },
    bench.cores?.load,
  );
  side.sent += rate * (1 + bench.seconds);
  return result;
}

function rowsOf(
  { upstream = [], ...proxies }: Record<string, ArrivalResult[]>,
  accounts: number,
  rate: number,
): string[][] {
  const added = (name: string, of: 'p50Ms' | 'p99Ms' | 'p999Ms') =>
    (proxies[name] ?? []).map((result, round) => result[of] - (upstream[round]?.[of] ?? Number.NaN));
  const plain = added(PLAIN, 'p99Ms');
  return Object.keys(proxies).map((name) => {
    const p99 = added(name, 'p99Ms');
    const ratio = median(p99.map((ms, round) => ms / (plain[round] ?? Number.NaN)));
    const figures = [
      median(added(name, 'p50Ms')),
      median(p99),
      Math.max(...p99),
      median(added(name, 'p999Ms')),
    ];
    return [
      ...[thousands(accounts), thousands(rate), name, ...figures.map((ms) => ms.toFixed(2))],
      ...(name === PLAIN ? ['', ''] : [ratio.toFixed(2), `${AIM}`]),
    ];
  });
}

import type { Bench } from '../lab/bench.ts';
import { table, thousands, writeResult } from '../report/section.ts';
import { ACCOUNTS, REPLICAS, WINDOW_SECONDS } from './fleet.ts';
import { measureLiteLlm } from './litellm.ts';
import { CLIENTS, KILLS, type Run, runWeir, type Terms } from './run.ts';

const RUNS: readonly Terms[] = [
  { name: 'nothing killed', kills: [], failsOver: false },
  { name: 'clients and replicas killed', kills: ['a client', 'a replica'], failsOver: false },
  { name: 'and Redis, started again', kills: ['a client', 'a replica', 'Redis'], failsOver: false },
  { name: 'and Redis, a replica promoted', kills: ['a client', 'a replica', 'Redis'], failsOver: true },
];

/**
 * Streams whose reservations and costs are random, through two replicas, while clients, replicas and Redis are killed: is a limit ever
 * exceeded, and does Redis count in the end what the access log says? LiteLLM's proxy is asked the same.
 */
export async function measureSettling(bench: Bench): Promise<readonly string[]> {
  const crowds = bench.either(8, 2);
  const limit = 20_000 * crowds;
  const runs: Run[] = [];
  for (const terms of RUNS.filter(({ name }) => bench.includes(name))) {
    bench.say(terms.name);
    const run = await runWeir(bench, terms, crowds, limit);
    runs.push(run);
    if (!run.failsOver && (overOf(run, limit) > 0 || unexplained(run) !== 0)) process.exitCode = 1;
    if (run.pointsLeft > 0) process.exitCode = 1;
  }
  if (bench.isRecorded) writeResult('settle.json', runs);
  const beside = bench.includes('LiteLLM')
    ? await measureLiteLlm(bench).catch((error: unknown) => [`LiteLLM could not be measured: ${error}`])
    : [];
  return [...linesOf(runs, bench.seconds, crowds, limit), '', ...beside];
}

function overOf({ ledger }: Run, limit: number): number {
  return Math.max(0, Math.round((ledger.fullest - 1) * limit));
}

/** What Redis counts, if each request costs what the logs say. */
function expected({ ledger }: Run) {
  const { loggedPoints, lostPoints, uncertainPoints } = ledger;
  return { least: loggedPoints + lostPoints.least, most: loggedPoints + lostPoints.most + uncertainPoints };
}

/** Points that Redis counts beyond what the logs explain, or that it lacks: then they are below 0. */
function unexplained(run: Run): number {
  const { least, most } = expected(run);
  return Math.max(0, run.countedPoints - most) + Math.min(0, run.countedPoints - least);
}

function linesOf(runs: readonly Run[], seconds: number, crowds: number, limit: number): readonly string[] {
  const row = (title: string, figure: (run: Run) => number | string) => [
    title,
    ...runs.map((run) => {
      const value = figure(run);
      return typeof value === 'number' ? thousands(value) : value;
    }),
  ];
  return [
    `${ACCOUNTS} Accounts with ${thousands(limit)} points in ${WINDOW_SECONDS} s each. Streams of server-sent events with random reservations and costs, of a service of our own,`,
    `through ${REPLICAS} replicas for ${seconds} s. The load is k6's, which reads each stream to its end, from ${crowds} processes with ${CLIENTS} clients each. ${KILLS} times a`,
    'process of the clients, a replica or the primary of Redis is ended by `kill -9` and started again. In the third run Redis writes each charge',
    'to its disk (`appendfsync always`); in the fourth, it has two replicas in memory, and a Sentinel promotes one of them. What Redis cannot count',
    'is refused (`onStoreFailure: reject`).',
    '',
    'Redis may count more than the access log has: it may have charged a request although its answer was lost or its client had left, and a',
    'killed replica has not written the lines of its last requests. The upstream or the clients know these, and what they reserved and cost.',
    '',
    ...table(
      ['', ...runs.map(({ name }) => `${name}:`)],
      [
        row('streams at once: half of the time, at least', ({ streams }) => streams.usual),
        row('streams at once, at most', ({ streams }) => streams.most),
        row('requests admitted, with a line in the access log', ({ ledger }) => ledger.admitted),
        row('of them settled', ({ ledger }) => ledger.settled),
        row('not settled, because the client left or the upstream broke off', reasonsOf),
        row('requests refused', ({ ledger }) => ledger.refused),
        row('requests whose replica was killed before their line', ({ ledger }) => ledger.lost),
        row(
          'requests that Redis did not answer, or whose client left before',
          ({ ledger }) => ledger.uncounted,
        ),
        row('requests whose replica was killed before it forwarded them', ({ ledger }) => ledger.unforwarded),
        row('fullest window, of the limit', ({ ledger }) => ledger.fullest.toFixed(3)),
        row('**points over the limit**', (run) => overOf(run, limit)),
        row('**points that still count after a window without requests**', ({ pointsLeft }) => pointsLeft),
        row('points reserved', ({ ledger }) => ledger.reservedPoints),
        row('points by the access log, settled ones where there are', ({ ledger }) => ledger.loggedPoints),
        row('and with the requests that have no line, or no answer', (run) => {
          const { least, most } = expected(run);
          return least === most ? least : `${thousands(least)} to ${thousands(most)}`;
        }),
        row('points that Redis counts in the end', ({ countedPoints }) => countedPoints),
        row('**points that no log explains** (below 0: that Redis has lost)', unexplained),
      ],
    ),
  ];
}

function reasonsOf({ ledger }: Run): string {
  const counts = Object.entries(ledger.reasons).map(([reason, count]) => `${thousands(count)} ${reason}`);
  return counts.join(', ') || 'none';
}

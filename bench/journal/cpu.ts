import { createDatabase, findPostgres, startPostgres } from '../../platform/test/fixtures/postgres.ts';
import { ACCOUNTS, type Bench, CONNECTIONS } from '../lab/bench.ts';
import { type Cost, mean, moreOf, shownShare } from '../lab/turns.ts';
import { table } from '../report/section.ts';
import { measurePair } from '../studies/measure-pair.ts';

/** Further requests are in no limit's way. */
const POINTS = 1_000_000_000;
const limits = {
  'account-day': { per: 'account', points: POINTS, window: '24h' },
  'organization-month': { per: 'organization', points: POINTS, period: 'month' },
};
/** Long enough that every charge is counted, even beside other work. */
const store = { deadlineMs: 1_000 };
/** The aim of the issue, with which this study fails. */
const MOST = 0.03;

/**
 * Measures what a journal costs the gateway: two gateways with the same limits, a day and a month besides two seconds, one of them with a
 * journal. Neighbouring seconds are compared, and further pairs of processes, because two with the same work differ by some percent.
 */
export async function measureJournalCpu(bench: Bench): Promise<readonly string[]> {
  const binaries = findPostgres();
  if (binaries === undefined) return ['PostgreSQL is not installed.'];
  const postgres = bench.endWith(await startPostgres(binaries, bench.cores?.load));
  const without: Cost[][] = [];
  const journaled: Cost[][] = [];
  const pairs = bench.either(12, 1);
  for (let pair = 1; pair <= pairs; pair++) {
    bench.say(`pair ${pair}/${pairs}`);
    const url = await createDatabase(postgres.url);
    const seen = await measurePair(bench, {
      without: { limits, settings: { store } },
      with: { limits, settings: { store, journal: { url } } },
    });
    without.push(seen.without);
    journaled.push(seen.with);
  }
  const rows = (['gatewayUs', 'redisUs'] as const).map((figure) => {
    const meansOf = (of: readonly Cost[][]) => of.map((costs) => mean(costs.map((cost) => cost[figure])));
    const [before, after] = [meansOf(without), meansOf(journaled)];
    const more = moreOf(after, before);
    if (figure === 'gatewayUs' && bench.isRecorded && more.share > MOST) process.exitCode = 1;
    const name = figure === 'gatewayUs' ? 'gateway' : 'Redis';
    return [name, mean(before).toFixed(1), mean(after).toFixed(1), shownShare(more)];
  });
  return [
    `CPU of a forwarded request in microseconds, ${CONNECTIONS} connections, ${ACCOUNTS} Accounts in turn, each charged to four buckets in Redis, of which a day`,
    `and a month are in the journal: means of ${pairs} pairs of processes, ${bench.rounds} seconds in turn each, and what the journal adds, with its standard error.`,
    'The aim for the gateway is at most 3 % more.',
    '',
    ...table(['', 'without a journal:', 'with one:', 'more:'], rows),
  ];
}

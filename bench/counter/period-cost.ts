import type { Redis } from 'ioredis';
import { calendarOf } from '../../src/domain/limits/calendar.ts';
import { bucketKey } from '../../src/store/keys.ts';
import { type Charge, MAX_LIMIT } from '../../src/store/store.ts';
import { runCharges } from '../../test/fixtures/run-charges.ts';
import { median } from '../lab/turns.ts';
import { table } from '../report/section.ts';
import { costOf } from './call-cost.ts';

const MONTH = calendarOf({ unit: 'month', timeZone: 'UTC', startsOn: 1 });
const WINDOW_SECONDS = 30 * 86_400;
const CALLS = 500;
const RUNS = { quick: 20, full: 200 };

const STATES: readonly [state: string, accountOf: (call: number) => number][] = [
  ['busy account', () => 1],
  ['1,000 accounts', (call) => 100 + (call % 1_000)],
  ['quiet accounts, first charge', (call) => 2e6 + call],
];

/** What a charge of a calendar month costs Redis, beside one of a window of 30 days. */
export async function measurePeriods(client: Redis, isQuick: boolean): Promise<readonly string[]> {
  const rows: string[][] = [];
  for (const [state, accountOf] of STATES) {
    const us = { window: [] as number[], period: [] as number[] };
    for (let run = 0; run < (isQuick ? RUNS.quick : RUNS.full); run++) {
      const accounts = Array.from({ length: CALLS }, (_, call) => accountOf(run * CALLS + call));
      // Which of them comes first changes.
      const kinds = run % 2 === 0 ? (['window', 'period'] as const) : (['period', 'window'] as const);
      for (const kind of kinds) us[kind].push(await costOfKind(client, kind, accounts));
    }
    const ratios = us.period.map((periodUs, run) => periodUs / (us.window[run] ?? 0));
    rows.push([
      state,
      Math.min(...us.window).toFixed(1),
      Math.min(...us.period).toFixed(1),
      median(ratios).toFixed(2),
    ]);
  }
  return [
    'A bucket of a calendar month beside one of a window of 30 days, in turn: the least µs a call, and the median ratio of neighbouring runs.',
    '',
    ...table(['state', 'window:', 'period:', 'period beside window:'], rows),
  ];
}

function costOfKind(client: Redis, kind: 'window' | 'period', accounts: readonly number[]): Promise<number> {
  const charges = accounts.map((account) => chargeOf(kind, account));
  return costOf(client, (charge) => runCharges(client, [charge]), charges, 0);
}

function chargeOf(kind: 'window' | 'period', account: number): Charge {
  const id = `acct_${account}`;
  const key = bucketKey('months', id, `account-${kind}`, id);
  const bucket = { key, limit: MAX_LIMIT, windowSeconds: WINDOW_SECONDS };
  return { buckets: [kind === 'period' ? { ...bucket, calendar: MONTH } : bucket], cost: 1 };
}

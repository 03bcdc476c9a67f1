import type { Running } from '../contestants/contestant.ts';
import { weir } from '../contestants/weir.ts';
import { type Bench, CONNECTIONS } from '../lab/bench.ts';
import { residentBytes } from '../lab/process-table.ts';
import { costOf } from '../lab/turns.ts';
import { table, thousands } from '../report/section.ts';
import { type Callers, callersOf, KINDS } from './callers.ts';

const ACCOUNTS = [1, 1_000, 100_000, 1_000_000];
const QUICK_ACCOUNTS = [1, 1_000, 20_000];

const FEW_ACCOUNTS = 20_000;
const MIB = 2 ** 20;

/** A gateway whose requests are of this many Accounts in turn. */
interface Side {
  readonly name: string;
  readonly accounts: number;
  readonly gateway: Running;
  readonly callers: Callers;
  readonly startMb: number;
  /** Requests so far, so that each second goes on with the next Account. */
  sent: number;
}

/** CPU time and memory with few and with many Accounts. A word chooses a store, a kind of identity or both (`'memory jwt'`). */
export async function measureRequests(bench: Bench): Promise<readonly string[]> {
  const rows: string[][] = [];
  for (const store of ['memory', 'redis'] as const) {
    for (const kind of KINDS) {
      if (bench.includes(`${store} ${kind.name}`)) rows.push(...(await measureKind(bench, store, kind)));
    }
  }
  return [
    `CPU time of a GET in microseconds, with the access log, on ${CONNECTIONS} connections, of Accounts in turn: the lowest of ${bench.rounds} seconds, in turn with`,
    'the other numbers of Accounts, after a request of each Account. Resident memory of the gateway when it has started, and after the requests.',
    'The endpoint of API keys is asked for each request, but requests with the same key share a call.',
    '',
    ...table(
      ['store', 'identity', 'Accounts:', 'µs:', '÷ one Account:', 'MB at the start:', 'MB after:'],
      rows,
    ),
  ];
}

async function measureKind(
  bench: Bench,
  store: 'memory' | 'redis',
  { name, most }: (typeof KINDS)[number],
): Promise<readonly string[][]> {
  const sides: Side[] = [];
  for (const accounts of bench.isQuick ? QUICK_ACCOUNTS : ACCOUNTS) {
    if (accounts > most) continue;
    const callers = bench.endWith(await callersOf(bench, name, accounts));
    const title = `${store} ${name} ${accounts}`;
    const gateway = await bench.start(weir(store, callers), title, { accounts: callers.listed });
    const startMb = residentBytes(gateway.pids) / MIB;
    sides.push({ name: title, accounts, gateway, callers, startMb, sent: 0 });
  }
  const rows = await rowsOf(bench, store, name, sides);
  for (const { gateway } of sides) await gateway.stop();
  return rows;
}

async function rowsOf(
  bench: Bench,
  store: string,
  kind: string,
  sides: readonly Side[],
): Promise<readonly string[][]> {
  for (const side of sides) {
    const untilMs = performance.now() + bench.either(6, 2) * 1_000;
    // Each start of the load reads the tokens up to the Account where the last one ended.
    const seconds = side.accounts > FEW_ACCOUNTS ? 10 : 1;
    while (side.sent < side.accounts || performance.now() < untilMs) await send(bench, side, seconds);
  }
  const seen = await bench.inTurn(sides, async (side) => (await send(bench, side)).gatewayUs);
  const lowest = (name: string) => Math.min(...(seen[name] ?? []));
  const one = lowest(sides[0]?.name ?? '');
  return sides.map(({ name, accounts, gateway, startMb }) => {
    const us = lowest(name);
    const afterMb = residentBytes(gateway.pids) / MIB;
    const memory = [startMb, afterMb].map((mb) => thousands(mb));
    return [store, kind, thousands(accounts), us.toFixed(1), (us / one).toFixed(2), ...memory];
  });
}

/** Requests that go on where the last ones ended. */
async function send(bench: Bench, side: Side, seconds = 1) {
  const { gateway, accounts, callers } = side;
  const load = () =>
    bench.strictLoad(gateway, {
      seconds,
      accounts,
      before: side.sent % accounts,
      tokensFile: callers.tokensFile,
    });
  const cost = await costOf(gateway, load);
  side.sent += cost.requests;
  return cost;
}

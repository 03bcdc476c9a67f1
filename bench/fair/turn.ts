import type { Guest, TurnSettings } from '../../src/gateway/upstream/turns/guest.ts';
import { Turns, type Visit } from '../../src/gateway/upstream/turns/turns.ts';
import { weir } from '../contestants/weir.ts';
import type { Bench } from '../lab/bench.ts';
import { costOf, median, usPerCall } from '../lab/turns.ts';
import { table, thousands } from '../report/section.ts';

const SETTINGS: TurnSettings = {
  connections: 512,
  maxWaiting: 200_000,
  publicPercent: 50,
  unauthenticatedPercent: 5,
  tunnelPercent: 50,
  reservePercent: 10,
  queueTimeoutMs: 3_600_000,
  concurrency: 'fixed',
};

/** What a turn costs: a place that is free, and one for which many payers wait. */
export async function measureTurn(bench: Bench): Promise<readonly string[]> {
  const gateway = await bench.start(weir('memory'), 'turn');
  const seconds = Array.from({ length: 6 });
  const costs: number[] = [];
  for (const _ of seconds) costs.push((await costOf(gateway, () => bench.strictLoad(gateway, {}))).gatewayUs);
  const forwardedUs = Math.min(...costs);
  const rows: (string | number)[][] = [];
  for (const waiting of [0, 1_000, 100_000]) {
    const us = await turnUs(waiting);
    rows.push([thousands(waiting), us.toFixed(2), `${((us / forwardedUs) * 100).toFixed(1)} %`]);
  }
  return [
    '',
    `A turn, in and out, in microseconds of a process that does nothing else, beside the ${forwardedUs.toFixed(1)} µs of a forwarded request (in memory, lowest of`,
    `${seconds.length} seconds). With payers that wait, each turn also gives the place to the next one, who waits again.`,
    '',
    ...table(['payers that wait:', 'µs:', 'of a forwarded request:'], rows),
  ];
}

async function turnUs(waiting: number): Promise<number> {
  const turns = new Turns(SETTINGS);
  const guests = Array.from({ length: 100_000 }, (_, index) => new Waiting(`acct_${index}`));
  if (waiting > 0) {
    for (let place = 0; place < SETTINGS.connections; place++) new Waiting(`busy_${place % 20}`).enter(turns);
    for (const guest of guests.slice(0, waiting)) guest.enter(turns);
  }
  const pass = (index: number) => {
    guests[index % guests.length]?.enter(turns).leave(turns);
    present.length = 0;
  };
  const next = () => present.shift()?.leave(turns).enter(turns);
  const rounds: number[] = [];
  for (let round = 0; round < 9; round++) rounds.push(await usPerCall(waiting === 0 ? pass : next));
  present.length = 0;
  return median(rounds);
}

/** Those that have a place, oldest first. */
const present: Waiting[] = [];

class Waiting implements Guest {
  readonly traffic = 'caller';
  readonly isTunnel = false;
  readonly payerId: string;
  visit: Visit | undefined;

  constructor(payerId: string) {
    this.payerId = payerId;
  }

  enter(turns: Turns): this {
    this.visit = turns.enter(this);
    if (this.visit?.state === 'present') this.onTurn();
    return this;
  }

  leave(turns: Turns): this {
    if (this.visit !== undefined) turns.leave(this.visit);
    return this;
  }

  onTurn(): void {
    present.push(this);
  }

  onTurnedAway(): void {}
}

import type { Redis } from 'ioredis';
import type { Charge } from '../../src/store/store.ts';

export type Send = (charge: Charge) => Promise<unknown>;

const IN_FLIGHT = 50;

/** The µs of a call. */
export async function costOf<Arguments>(
  client: Redis,
  send: (call: Arguments) => Promise<unknown>,
  calls: readonly Arguments[],
  pauseMs: number,
): Promise<number> {
  const before = await evalStats(client);
  for (let first = 0; first < calls.length; first += IN_FLIGHT) {
    await Promise.all(calls.slice(first, first + IN_FLIGHT).map(send));
    if (pauseMs > 0) await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
  const after = await evalStats(client);
  return (after.us - before.us) / (after.calls - before.calls);
}

async function evalStats(client: Redis): Promise<{ calls: number; us: number }> {
  const line = /cmdstat_evalsha:calls=(\d+),usec=(\d+)/.exec(await client.info('commandstats'));
  return { calls: Number(line?.[1] ?? 0), us: Number(line?.[2] ?? 0) };
}

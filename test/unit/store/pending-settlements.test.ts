/** A server that does not answer delays the settlements of no other server, and its own no longer than it is away. */
import { afterEach, expect, it } from 'vitest';
import { pace } from '../../../src/domain/pace.ts';
import { PendingSettlements } from '../../../src/store/redis/pending-settlements.ts';
import type { Settled, Settlement } from '../../../src/store/store.ts';
import { silentObserver } from '../../../src/store/store-observer.ts';

const HOUR_MS = 3_600_000;
const usual = pace.settlements;
afterEach(() => {
  Object.assign(pace, { settlements: usual });
});

function settlementOf(key: string): Settlement {
  return {
    charge: { buckets: [{ key, limit: 100, windowSeconds: 3_600 }], cost: 5 },
    chargedAtUs: 1,
    cost: 2,
    refundsRequests: false,
    id: `of ${key}`,
  };
}

/** Settlements of keys of the servers 1 and 2. No timer has them sent again. */
function open() {
  Object.assign(pace, { settlements: { firstMs: HOUR_MS, longestMs: HOUR_MS } });
  const problems = new Map<number, string>();
  const answer: Settled = { outcome: 'settled', buckets: [undefined] };
  const sent: number[] = [];
  const pending: PendingSettlements = new PendingSettlements(
    {
      groupOf: (key) => Number(key[0]),
      problemOf: (group) => problems.get(group),
      async send(some, group) {
        sent.push(group);
        if (problems.has(group)) throw new Error('Connection is closed.');
        return some.map(() => answer);
      },
    },
    silentObserver,
    () => setImmediate(() => pending.flush()),
  );
  return { pending, problems, sent };
}

it('beside a server that is away, the settlements of another are sent at the end of their turn', async () => {
  const { pending, problems, sent } = open();
  problems.set(1, 'disconnected');
  void pending.add(settlementOf('1a'));
  expect(await pending.add(settlementOf('2a'))).toMatchObject({ outcome: 'settled' });
  expect(await pending.add(settlementOf('2b'))).toMatchObject({ outcome: 'settled' });
  expect(sent).toEqual([2, 2]);
  await pending.close();
});

it('once a server is back, its next settlements wait for no earlier one, and the earlier ones for no timer', async () => {
  const { pending, problems } = open();
  problems.set(1, 'disconnected');
  const early = pending.add(settlementOf('1a'));
  pending.flush();
  problems.clear();
  expect(await pending.add(settlementOf('1b'))).toMatchObject({ outcome: 'settled' });
  pending.sendAgain();
  expect(await early).toMatchObject({ outcome: 'settled' });
  await pending.close();
});

it('what still waits when the store is closed is sent once more, and then dropped', async () => {
  const { pending, problems } = open();
  problems.set(1, 'disconnected');
  const early = pending.add(settlementOf('1a'));
  const late = pending.add(settlementOf('2a'));
  problems.set(2, 'disconnected');
  pending.flush();
  problems.delete(2);
  await pending.close();
  expect([await early, await late]).toMatchObject([
    { outcome: 'dropped', reason: 'closed' },
    { outcome: 'settled' },
  ]);
});

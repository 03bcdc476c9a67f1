import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { Journal } from '../../../src/store/journal/journal.ts';
import type { JournaledCounts } from '../../../src/store/journal/journaled-counts.ts';
import { Recovery } from '../../../src/store/journal/recovery.ts';
import type { AskedRecovery, RecoveryTables } from '../../../src/store/journal/recovery-tables.ts';

const NEVER_ASKED: AskedRecovery = { asked: 0, reading: null, server: null, askedSeconds: null };
const PATIENCE_MS = 5_000;

/** A replica whose store has lost everything. PostgreSQL answers when `reach` is called. */
function startLost() {
  const calls: string[] = [];
  const attending: ((recovery: AskedRecovery) => void)[] = [];
  let taken: (groups: readonly number[]) => void = () => {};
  const tables = {
    attend: () => new Promise<AskedRecovery>((resolve) => attending.push(resolve)),
    alone: () => new Promise(() => {}),
  } as unknown as RecoveryTables;
  const journal = { added: 0, onWritten: () => {} } as Journal;
  const counts: JournaledCounts = {
    answered: async () => {},
    isComplete: async () => false,
    recover: async () => false,
    overtake: () => {
      calls.push('overtake');
      return new Promise((resolve) => {
        taken = resolve;
      });
    },
    goOn: (groups) => void calls.push(`go on with ${groups}`),
    insist: () => void calls.push('insist'),
  };
  const recovery = new Recovery(tables, journal, counts, { recovered() {}, recoveryFailed() {} });
  recovery.want();
  const take = async () => {
    taken([3]);
    await vi.advanceTimersByTimeAsync(0);
  };
  const reach = async () => {
    for (const resolve of attending.splice(0)) resolve(NEVER_ASKED);
    await vi.advanceTimersByTimeAsync(0);
  };
  return { calls, journal, take, reach };
}

beforeEach(() => void vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] }));
afterEach(() => void vi.useRealTimers());

test('if PostgreSQL is away for five seconds, lost groups are taken, and then count by what the store has', async () => {
  const { calls, take, reach } = startLost();
  await vi.advanceTimersByTimeAsync(PATIENCE_MS - 1);
  expect(calls).toEqual([]);
  await vi.advanceTimersByTimeAsync(1);
  expect(calls).toEqual(['overtake']);
  await take();
  expect(calls).toEqual(['overtake', 'go on with 3']);
  await reach();
  expect(calls).toEqual(['overtake', 'go on with 3', 'insist']);
});

test('nothing goes on that PostgreSQL was reached for meanwhile: this replica may be asked to write', async () => {
  const { calls, take, reach } = startLost();
  await vi.advanceTimersByTimeAsync(PATIENCE_MS);
  await reach();
  await take();
  expect(calls).toEqual(['overtake', 'insist']);
});

test('nothing goes on while the journal is written', async () => {
  const { calls, journal } = startLost();
  for (let second = 0; second < 20; second++) {
    await vi.advanceTimersByTimeAsync(1_000);
    journal.onWritten();
  }
  expect(calls).toEqual([]);
});

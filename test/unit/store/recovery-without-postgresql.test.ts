import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { Journal } from '../../../src/store/journal/journal.ts';
import type { JournaledCounts, Recovering } from '../../../src/store/journal/journaled-counts.ts';
import { Recovery } from '../../../src/store/journal/recovery.ts';
import type { AskedRecovery, RecoveryTables } from '../../../src/store/journal/recovery-tables.ts';

const NEVER_ASKED: AskedRecovery = { asked: 0, reading: null, server: null, askedSeconds: null };
const PATIENCE_MS = 5_000;

/** A replica whose store has lost everything, or nothing. PostgreSQL answers when `reach` is called, and lets a recovery end when `end` is. */
function startLost(isLost = true) {
  const calls: string[] = [];
  const notices: string[] = [];
  const attending: ((recovery: AskedRecovery) => void)[] = [];
  let taken: (groups: readonly number[]) => void = () => {};
  let turn: () => void = () => {};
  const tables = {
    attend: () => new Promise<AskedRecovery>((resolve) => attending.push(resolve)),
    alone: (work: () => Promise<void>) =>
      new Promise<void>((resolve) => {
        turn = () => resolve(work());
      }),
    flushAll: () => new Promise(() => {}),
  } as unknown as RecoveryTables;
  const journal = { added: 0, onWritten: () => {} } as Journal;
  const counts: JournaledCounts = {
    answered: async () => {},
    isComplete: async () => !isLost,
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
  const recovery = new Recovery(tables, journal, counts, {
    recovered() {},
    recoveryFailed() {},
    countsGoOn: () => void notices.push('counts go on'),
    countsComplete: () => void notices.push('counts are complete'),
  });
  recovery.want();
  const take = async (groups = [3]) => {
    taken(groups);
    await vi.advanceTimersByTimeAsync(0);
  };
  const reach = async (found = NEVER_ASKED) => {
    for (const resolve of attending.splice(0)) resolve(found);
    await vi.advanceTimersByTimeAsync(0);
  };
  const end = async () => {
    turn();
    await recovery.idle();
  };
  return { recovery, tables, counts, calls, notices, journal, take, reach, end };
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

test('after each overtake, PostgreSQL has twice as long for a recovery, up to a minute, until one has ended', async () => {
  const { recovery, calls, journal, take, end } = startLost();
  for (const patience of [1, 2, 4, 8, 12, 12]) {
    await vi.advanceTimersByTimeAsync(patience * PATIENCE_MS - 1);
    expect(calls).toEqual([]);
    await vi.advanceTimersByTimeAsync(1);
    await take();
    expect(calls.splice(0)).toEqual(['overtake', 'go on with 3']);
    journal.onWritten();
  }
  await end();
  calls.length = 0;
  recovery.want();
  await vi.advanceTimersByTimeAsync(PATIENCE_MS);
  expect(calls).toEqual(['overtake']);
});

test('a replica does not end its own recovery while that waits for writes', async () => {
  const { counts, calls, end } = startLost();
  counts.recover = async (_, __, work) => {
    await work({} as Recovering, 'a1');
    return true;
  };
  await vi.advanceTimersByTimeAsync(0);
  void end();
  await vi.advanceTimersByTimeAsync(4 * PATIENCE_MS);
  expect(calls).toEqual([]);
});

test('a recovery goes on without its own writes if they hang, and is repeated when they have ended', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'setTimeout', 'clearTimeout'] });
  const { tables, counts, journal, notices, reach } = startLost();
  const recoveries: boolean[] = [];
  counts.recover = async (_, isInDoubt, work) => {
    recoveries.push(isInDoubt);
    await work({ wanted: async () => [] } as unknown as Recovering, 'a1');
    return true;
  };
  let reads = 0;
  const written: ((isWritten: boolean) => void)[] = [];
  const flush = () => new Promise<boolean>((resolve) => written.push(resolve));
  Object.assign(journal, { added: 1, flush });
  Object.assign(tables, {
    alone: (work: () => Promise<void>) => work(),
    flushAll: async () => {},
    present: () => {
      reads += 1;
      return [];
    },
  });
  await vi.advanceTimersByTimeAsync(0);
  const asked = { asked: 1, reading: 1, server: 'a1', askedSeconds: 0 };
  await reach({ ...asked, reading: null });
  expect(written.length).toBeGreaterThan(0);
  await vi.advanceTimersByTimeAsync(3_999);
  expect(reads).toBe(0);
  await vi.advanceTimersByTimeAsync(1);
  expect(reads).toBe(1);
  await vi.waitFor(() => expect(notices).toEqual(['counts are complete']));
  for (const resolve of written) resolve(true);
  await vi.waitFor(async () => {
    await reach(asked);
    expect(recoveries).toEqual([false, true]);
  });
});

test('while PostgreSQL stays away, lost groups are looked for every five seconds', async () => {
  const { calls, take } = startLost();
  for (let times = 1; times <= 20; times++) {
    await vi.advanceTimersByTimeAsync(PATIENCE_MS);
    await take([]);
  }
  expect(calls).toEqual(Array.from({ length: 20 }, () => 'overtake'));
});

test('what is lost while a recovery waits for its turn counts as well', async () => {
  const { recovery, calls, reach, take } = startLost(false);
  recovery.arrived('a1');
  await reach({ ...NEVER_ASKED, server: 'b2' });
  await vi.advanceTimersByTimeAsync(2 * PATIENCE_MS);
  expect(calls.filter((call) => call === 'overtake')).toEqual([]);
  recovery.want();
  await vi.advanceTimersByTimeAsync(PATIENCE_MS);
  expect(recovery.isLost).toBe(false);
  await take();
  expect(calls.slice(-2)).toEqual(['overtake', 'go on with 3']);
  expect(recovery.isLost).toBe(true);
});

test('the observer is notified when counts go on, and when nothing is lost any more', async () => {
  const { notices, take, end } = startLost();
  await vi.advanceTimersByTimeAsync(PATIENCE_MS);
  expect(notices).toEqual([]);
  await take();
  expect(notices).toEqual(['counts go on']);
  await end();
  expect(notices).toEqual(['counts go on', 'counts are complete']);
});

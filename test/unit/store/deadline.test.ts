import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, onTestFinished, test, vi } from 'vitest';
import { Deadline } from '../../../src/store/dispatch/deadline.ts';

interface Call {
  isSettled: boolean;
}

function watching(deadlineMs: number) {
  const missed: Call[] = [];
  const deadline = new Deadline<Call>(
    deadlineMs,
    ({ isSettled }) => isSettled,
    (call) => missed.push(call),
  );
  onTestFinished(() => deadline.close());
  return { deadline, missed };
}

function stopTheClock(): void {
  vi.useFakeTimers();
  onTestFinished(() => {
    vi.useRealTimers();
  });
}

test('a call that is not settled in time is reported once; a settled one never', () => {
  stopTheClock();
  const { deadline, missed } = watching(10);
  const [late, answered] = [{ isSettled: false }, { isSettled: true }];
  deadline.watch(late);
  deadline.watch(answered);
  vi.advanceTimersByTime(9);
  expect(missed).toEqual([]);
  vi.advanceTimersByTime(100);
  expect(missed).toEqual([late]);
});

test('each call has the whole of its own deadline', () => {
  stopTheClock();
  const { deadline, missed } = watching(40);
  for (let call = 0; call < 3; call++) {
    deadline.watch({ isSettled: false });
    vi.advanceTimersByTime(15);
  }
  // 45 ms on, the first call, due at 40, is the only one missed; the others follow at 55 and 70.
  const missedAfter = [0, 9, 2, 13, 2].map((stepMs) => {
    vi.advanceTimersByTime(stepMs);
    return missed.length;
  });
  expect(missedAfter).toEqual([1, 1, 2, 2, 3]);
});

test('an answer that arrived while the process was busy is not late', async () => {
  const { deadline, missed } = watching(10);
  const call = { isSettled: false };
  deadline.watch(call);
  const busyUntilMs = performance.now() + 30;
  while (performance.now() < busyUntilMs);
  // What the poll phase does with a socket that became readable meanwhile: after the timers, before the verdict.
  setImmediate(() => {
    call.isSettled = true;
  });
  for (let turn = 0; turn < 3; turn++) await nextTurn();
  expect(missed).toEqual([]);
});

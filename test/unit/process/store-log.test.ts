import { pino } from 'pino';
import { beforeEach, expect, test } from 'vitest';
import { observeStore } from '../../../src/process/store-log.ts';
import { silentObserver } from '../../../src/store/store-observer.ts';

let nowMs: number;
let lines: string[];
let observer: ReturnType<typeof observeStore>;

beforeEach(() => {
  nowMs = 0;
  lines = [];
  const log = pino({ level: 'info' }, { write: (line) => void lines.push(line) });
  observer = observeStore(silentObserver, log, () => nowMs);
});

const levels = () => lines.map((line) => (JSON.parse(line) as { level: number }).level);

test('a refusal is logged as an error, and again every minute', () => {
  for (; nowMs <= 120_000; nowMs += 500) observer.connectionFailed('auth', 'WRONGPASS');
  expect(levels()).toEqual([50, 50, 50]);
});

test('a refusal is written although another failure was written just before', () => {
  observer.connectionFailed('disconnected', 'ECONNREFUSED');
  observer.connectionFailed('auth', 'WRONGPASS');
  expect(levels()).toEqual([40, 50]);
});

test('a command that is refused counts as a refusal', () => {
  observer.uncounted('auth', 1);
  observer.uncounted('auth', 1);
  expect(levels()).toEqual([50]);
});

test('the answer of Redis to a charge is written with the reason', () => {
  observer.uncounted('auth', 1, "NOPERM this user has no permissions to run the 'evalsha' command");
  observer.uncounted('oom', 1, 'OOM command not allowed');
  observer.breakerChanged('primary', 'open');
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([
    { reason: 'auth', problem: "NOPERM this user has no permissions to run the 'evalsha' command" },
    { reason: 'oom', problem: 'OOM command not allowed', route: 'primary' },
  ]);
});

test('an open breaker names the reason of what opened it', () => {
  observer.uncounted('deadline', 1);
  observer.breakerChanged('primary', 'open');
  expect(JSON.parse(lines[0] ?? '')).toMatchObject({ level: 40, reason: 'deadline', route: 'primary' });
});

test('one line when it counts again, and the next failure is logged soon', () => {
  observer.connectionFailed('auth', 'WRONGPASS');
  observer.called(1, 100, 0);
  observer.called(1, 100, 0);
  expect(levels()).toEqual([50, 30]);
  nowMs += 10_000;
  observer.connectionFailed('auth', 'WRONGPASS');
  expect(levels()).toEqual([50, 30, 50]);
});

test('it does not count again while each answer is a refusal', () => {
  observer.uncounted('auth', 1, 'NOPERM');
  observer.called(1, 100, 1);
  observer.called(2, 100, 2);
  expect(levels()).toEqual([50]);
  observer.called(2, 100, 1);
  expect(levels()).toEqual([50, 30]);
});

test('a setting that weakens the limits is a warning, once for each server and value', () => {
  for (let turn = 0; turn < 3; turn++) {
    observer.settingChecked('primary', 'maxmemory-policy', 'it evicts');
    observer.settingChecked('primary', 'min-replicas', undefined);
  }
  expect(levels()).toEqual([40]);
  observer.settingChecked('10.0.0.7:6379', 'maxmemory-policy', 'it evicts');
  observer.settingChecked('primary', 'maxmemory-policy', undefined);
  observer.settingChecked('primary', 'maxmemory-policy', 'it evicts again');
  expect(levels()).toEqual([40, 40, 40]);
});

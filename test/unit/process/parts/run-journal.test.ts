import { pino } from 'pino';
import { expect, test } from 'vitest';
import type { Metrics } from '../../../../src/observe/metrics/metrics.ts';
import { observeJournal } from '../../../../src/process/parts/run-journal.ts';

test('each outage is logged once, also if another replica puts the counts back', () => {
  const lines: string[] = [];
  const log = pino({ level: 'info' }, { write: (line) => void lines.push(line) });
  const observer = observeJournal({ recoveryFailed() {} } as unknown as Metrics, log);
  const outage = () => {
    for (let attempt = 0; attempt < 3; attempt++) {
      observer.recoveryFailed(new Error('connect ECONNREFUSED'));
      observer.countsGoOn();
    }
    return lines.splice(0).map((line) => (JSON.parse(line) as { msg: string }).msg);
  };
  const logged = [
    'durable counts cannot be put back: without PostgreSQL, their limits soon count from what Redis has',
    'PostgreSQL cannot be reached: durable limits count from what Redis has',
  ];
  expect(outage()).toEqual(logged);
  expect(outage()).toEqual([]);
  observer.countsComplete();
  expect(outage()).toEqual(logged);
});

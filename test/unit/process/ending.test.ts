import { pino } from 'pino';
import { expect, it } from 'vitest';
import { endingOf } from '../../../src/process/ending.ts';

const log = pino({ enabled: false });
const SETTINGS = { shutdown: { drainDelaySeconds: 0, graceSeconds: 0 } };

/** A part that is closed when the test says so. */
function partOf(name: string, events: string[]) {
  let answer = () => {};
  const promise = new Promise<void>((resolve) => {
    answer = resolve;
  });
  return {
    answer: () => answer(),
    async close() {
      events.push(`${name} begins`);
      await promise;
      events.push(`${name} ends`);
    },
  };
}

it('a group is closed when the groups before it are, and its parts do not wait for each other', async () => {
  const events: string[] = [];
  const [ports, collector, store] = ['ports', 'collector', 'store'].map((name) => partOf(name, events));
  if (!ports || !collector || !store) throw new Error('there are three parts');
  const state = { isReady: true };
  const closed = endingOf(state, [[ports], [collector, store]], SETTINGS, log).close();
  expect(state.isReady).toBe(false);
  expect(events).toEqual(['ports begins']);
  ports.answer();
  await expect.poll(() => events).toContain('store begins');
  store.answer();
  await expect.poll(() => events).toContain('store ends');
  expect(events).not.toContain('collector ends');
  collector.answer();
  await closed;
  expect(events.at(-1)).toBe('collector ends');
});

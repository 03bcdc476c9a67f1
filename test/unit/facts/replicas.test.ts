import { expect, it } from 'vitest';
import { pace } from '../../../src/domain/pace.ts';
import { Replicas } from '../../../src/facts/replicas.ts';
import type { SeenReplicas } from '../../../src/store/shared-store.ts';

/** Four of these steps are longer than an announcement lasts, and three are not. */
const STEP_MS = pace.presenceMs / 3.6;

/** Replicas with a list that shows what the test says, and no answer for undefined. */
function open(expected = 1) {
  const clock = { ms: 0 };
  let next: SeenReplicas | undefined;
  const presence = {
    async announce() {
      if (next === undefined) throw new Error('no answer');
      return next;
    },
    async close() {},
  };
  const replicas = new Replicas(presence, expected, () => clock.ms);
  const see = async (count: number | undefined, isContinued = true): Promise<number> => {
    clock.ms += STEP_MS;
    next = count === undefined ? undefined : { replicas: count, isContinued };
    await replicas.announce();
    return replicas.count;
  };
  return { clock, replicas, see };
}

it('a replica that appears counts at once, and one that is gone once two readings lack it', async () => {
  const { see, clock } = open();
  expect(await see(1, false)).toBe(1);
  expect(await see(4)).toBe(4);
  clock.ms += 4 * STEP_MS;
  expect(await see(3)).toBe(4);
  expect(await see(4)).toBe(4);
  expect(await see(3)).toBe(4);
  expect(await see(3)).toBe(3);
});

it('the last number stays while the store does not answer, and its age grows', async () => {
  const { see, clock, replicas } = open();
  expect(replicas.ageSeconds).toBeUndefined();
  await see(4, false);
  expect(replicas.ageSeconds).toBe(0);
  for (let failed = 0; failed < 10; failed++) expect(await see(undefined)).toBe(4);
  clock.ms += 55_000;
  expect(replicas.ageSeconds).toBe(55 + (10 * STEP_MS) / 1_000);
});

it('a list that has just come back empty divides by nobody less until all had time to return', async () => {
  const { see } = open();
  await see(4, false);
  await see(undefined);
  for (const seen of [1, 1, 2, 3]) expect(await see(seen, seen > 1)).toBe(4);
  await see(3);
  await see(3);
  expect(await see(3)).toBe(3);
});

it('before others are seen, the expected number counts', async () => {
  const { see, replicas } = open(6);
  expect(replicas.count).toBe(6);
  expect(await see(undefined)).toBe(6);
  expect(await see(1, false)).toBe(6);
  for (let seen = 0; seen < 4; seen++) await see(2);
  expect(replicas.count).toBe(2);
});

it('without a shared store, one replica has the whole limit', async () => {
  const replicas = new Replicas(undefined, 6);
  replicas.start();
  expect(replicas.count).toBe(1);
  await replicas.close();
});

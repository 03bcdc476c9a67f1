/** Every order of steps and faults of the model is tried, within the bounds of each setup; in CI of all setups. */
import { isDeepStrictEqual } from 'node:util';
import { describe, expect, test } from 'vitest';
import { generatedCombinations } from '../fixtures/generated-cases.ts';
import { type Explored, explore } from './explore.ts';
import { journalModel, type Setup } from './journal-model.ts';
import type { Part } from './parts.ts';

const SETUPS: readonly Setup[] = [
  { replicas: 1, limit: 2, faults: { empties: 2, lost: 1 } },
  { replicas: 2, limit: 2, faults: { empties: 1, deaths: 1 } },
  { replicas: 2, faults: { empties: 1, periods: 1 } },
  { replicas: 2, faults: { empties: 1, slow: 1, deaths: 1 } },
  { replicas: 2, faults: { empties: 1, locks: 1 } },
  { replicas: 2, settles: -1, asks: false, faults: { empties: 1, locks: 1, settlements: 1 } },
  { replicas: 1, faults: { empties: 1, starts: 1 } },
  { replicas: 1, faults: { empties: 1, lost: 1, settlements: 2 } },
  { replicas: 2, faults: { empties: 1, settlements: 1 } },
  { replicas: 1, limit: 2, settles: -1, faults: { empties: 1, lost: 1, settlements: 1 } },
  { replicas: 2, settles: -1, faults: { empties: 1, settlements: 1 } },
  { replicas: 2, faults: { failovers: 1, settlements: 1 } },
  { replicas: 2, faults: { snapshots: 1 } },
  { replicas: 2, faults: { failovers: 1 } },
  { replicas: 1, faults: { failovers: 3 } },
  { replicas: 1, faults: { failovers: 2, restarts: 1 } },
  { replicas: 2, faults: { empties: 1, impatience: 1 } },
  { replicas: 2, faults: { empties: 1, impatience: 1, slow: 1 } },
  { replicas: 2, faults: { snapshots: 1, impatience: 1 } },
  { replicas: 1, limit: 2, faults: { empties: 1, impatience: 1, lost: 1 } },
  { replicas: 1, settles: -1, faults: { empties: 1, impatience: 1, settlements: 1 } },
];

/** `npm run model` tries these as well. */
const LARGER: readonly Setup[] = [
  { replicas: 2, limit: 2, faults: { empties: 1, periods: 1, lost: 1 } },
  { replicas: 2, faults: { snapshots: 1, empties: 1, deaths: 1 } },
  { replicas: 3, faults: { empties: 1 } },
  { replicas: 2, faults: { failovers: 2 } },
  { replicas: 2, settles: -1, faults: { empties: 1, locks: 1, settlements: 1 } },
  { replicas: 1, faults: { empties: 2, impatience: 2 } },
  { replicas: 1, faults: { empties: 1, impatience: 1, starts: 1 } },
  { replicas: 2, faults: { empties: 1, impatience: 2 } },
  { replicas: 2, faults: { empties: 1, impatience: 1, deaths: 1 } },
  { replicas: 2, faults: { empties: 1, impatience: 1, locks: 1 } },
  { replicas: 2, faults: { failovers: 1, impatience: 1 } },
  { replicas: 1, faults: { failovers: 2, impatience: 2 } },
  { replicas: 2, settles: -1, faults: { empties: 1, impatience: 1, settlements: 1 } },
];

const TIMEOUT_MS = 3_600_000;

const textOf = ({ replicas, limit = 1, settles = 1, asks = true, faults }: Setup) =>
  [
    `${replicas} replicas, a limit of ${limit}, ${JSON.stringify(faults)}`,
    settles < 0 ? ', which give back' : '',
    asks ? '' : ', while no owner asks',
  ].join('');

const explored = new Map<string, Explored>();

/** Explores the setup with all parts, once. */
function exploreWhole(setup: Setup): Explored {
  const text = textOf(setup);
  const known = explored.get(text) ?? explore(journalModel(setup));
  explored.set(text, known);
  return known;
}

test.each(
  [...generatedCombinations(SETUPS), ...(process.env.EXPLORED === 'all' ? LARGER : [])].map(
    (setup) => [textOf(setup), setup] as const,
  ),
)('no point is above the limit or forgotten: %s', { timeout: TIMEOUT_MS }, (text, setup) => {
  const { states, depth, found } = exploreWhole(setup);
  console.log(`${text}: ${states} states, at most ${depth} steps`);
  expect(found).toBeUndefined();
});

test('every state is read back from its text as it was', () => {
  const model = journalModel({ replicas: 2, faults: { failovers: 1, lost: 2, starts: 1, settlements: 1 } });
  const changed: string[] = [];
  for (let turn = 0, state = model.initial; turn < 2000; turn++) {
    const steps = model.stepsOf(state);
    // From the start again where nothing is left to do.
    const next = steps[(turn * 7) % steps.length]?.next ?? model.initial;
    const text = model.keyOf(next);
    if (!isDeepStrictEqual(model.stateOf(text), next)) changed.push(text);
    state = next;
  }
  expect(changed).toEqual([]);
});

/** What goes wrong without a part, in the smallest setup that shows it. */
const NEEDED: Readonly<Record<Part, readonly [Setup, string]>> = {
  'charges look at the mark': [
    { replicas: 1, faults: { empties: 1 } },
    'more points were admitted than the limit',
  ],
  'settlements look at the mark': [
    { replicas: 2, faults: { empties: 1, settlements: 1 } },
    'points are forgotten',
  ],
  'a settlement is applied once': [
    { replicas: 1, faults: { lost: 1, settlements: 1 } },
    'Redis has more points than were charged',
  ],
  'the mark names its server': [
    { replicas: 1, faults: { snapshots: 1 } },
    'more points were admitted than the limit',
  ],
  'the mark is taken for a recovery': [{ replicas: 1, faults: { empties: 2 } }, 'points are forgotten'],
  'all replicas write before counts are read': [
    { replicas: 2, faults: { empties: 1 } },
    'points are forgotten',
  ],
  'answers are waited for before sums are written': [
    { replicas: 1, faults: { empties: 1 } },
    'points are forgotten',
  ],
  'a batch is written once': [
    { replicas: 1, faults: { lost: 1 } },
    'the journal has more points than were admitted',
  ],
  'sums and sequence are written in one transaction': [
    { replicas: 1, faults: { empties: 1 } },
    'points are forgotten',
  ],
  'what is put back is of the present period': [
    { replicas: 1, faults: { empties: 1, periods: 1 } },
    'Redis has more points than were charged',
  ],
  'a replica that was left out has counts put back again': [
    { replicas: 2, faults: { empties: 1, slow: 1 } },
    'points are forgotten for good',
  ],
  'a replica that comes to another server has counts put back there': [
    { replicas: 2, faults: { failovers: 1 } },
    'points are forgotten for good',
  ],
  'a starting replica compares the server with the last recovery': [
    { replicas: 1, faults: { failovers: 2, restarts: 1 } },
    'points are forgotten for good',
  ],
  'during a recovery, an owner counts only where it was put back': [
    { replicas: 1, faults: { empties: 1 } },
    'more points were admitted than the limit',
  ],
  'all replicas write before an owner is put back': [
    { replicas: 2, faults: { empties: 1 } },
    'points are forgotten',
  ],
  'an owner that was put back counts for one recovery': [
    { replicas: 1, faults: { snapshots: 2 } },
    'more points were admitted than the limit',
  ],
  'what was read before an owner was put back is not put back after it': [
    { replicas: 1, settles: -1, faults: { empties: 1, settlements: 1 } },
    'Redis has more points than were charged',
  ],
  'an owner counts after all that was sent before': [
    { replicas: 1, settles: -1, faults: { empties: 1, settlements: 1 } },
    'Redis has more points than were charged',
  ],
  'a recovery ends after every owner that it puts back first': [
    { replicas: 1, faults: { empties: 1 } },
    'points are forgotten',
  ],
  'counts are put back only by the recovery that has the mark': [
    { replicas: 2, settles: -1, asks: false, faults: { empties: 1, locks: 1, settlements: 1 } },
    'Redis has more points than were charged',
  ],
  'an owner counts after it was put back': [{ replicas: 1, faults: { empties: 1 } }, 'points are forgotten'],
  'a replica looks at the mark again before it writes': [
    { replicas: 1, faults: { empties: 1, impatience: 1 } },
    'points are forgotten',
  ],
  'a replica that goes on without the journal ends the recovery that has the mark': [
    { replicas: 1, faults: { empties: 1, impatience: 1 } },
    'points are forgotten',
  ],
};

describe('a part that is left out is missed:', () => {
  test.each(Object.entries(NEEDED))('%s', { timeout: TIMEOUT_MS }, (part, [setup, problem]) => {
    expect(exploreWhole(setup).found).toBeUndefined();
    const { found } = explore(journalModel({ ...setup, without: part as Part }));
    console.log(`without "${part}", ${found?.problem}: ${found?.steps.join('; ')}`);
    expect(found?.problem).toBe(problem);
  });
});

import { pino } from 'pino';
import { expect, it, onTestFinished } from 'vitest';
import { changeFacts } from '../../../../src/admin/facts/fact-change.ts';
import { type Fact, Facts } from '../../../../src/facts/facts.ts';
import { FollowedFacts } from '../../../../src/facts/followed-facts.ts';
import { SharedClock } from '../../../../src/facts/shared-clock.ts';
import { Changes } from '../../../../src/observe/log/noticed-changes.ts';

interface Named extends Fact {
  readonly id: string;
}

it('a fact for which another would be dropped is refused, and what is known can still be changed', async () => {
  const lines: Record<string, unknown>[] = [];
  const log = pino({}, { write: (line) => lines.push(JSON.parse(line) as Record<string, unknown>) });
  const known = new Facts<Named>({
    topic: 'blocks',
    plural: 'blocks',
    metric: 'block',
    most: 2,
    keyOf: ({ id }) => id,
    write: (fact) => JSON.stringify(fact),
    read: () => undefined,
  });
  const clock = new SharedClock();
  const sharing = { store: undefined, clock, observer: { sharedIgnored() {} }, log };
  const facts = new FollowedFacts(known, sharing, {
    apply: (fact) => known.add(fact, clock.nowMs()),
    ended() {},
  });
  onTestFinished(() => facts.close());
  const make = (id: string, isRemoved = false) =>
    changeFacts(facts, new Changes(log, Date.now), {
      action: 'blocked',
      by: 'alice',
      why: 'test',
      details: () => ({}),
      keys: [id],
      make: (atMs) => [{ id, atMs, untilMs: atMs + 60_000, ...(isRemoved && { isRemoved }) }],
    });
  const ids = () => known.inForce(clock.nowMs()).map(({ id }) => id);

  await make('a');
  await make('b');
  await expect(make('c')).rejects.toMatchObject({
    status: 409,
    message: expect.stringContaining('at most 2 blocks are kept'),
  });
  expect(ids()).toEqual(['a', 'b']);
  expect(lines.at(-1)).toMatchObject({ audit: true, outcome: 'unchanged' });
  await make('b', true);
  expect(ids()).toEqual(['a']);
});

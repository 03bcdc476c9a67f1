import { expect, test } from 'vitest';
import type { AskedRecovery } from '../../../src/store/journal/recovery-tables.ts';
import { Standing } from '../../../src/store/journal/standing.ts';

const [FIRST, SECOND] = ['a1', 'b2'];
const NONE: AskedRecovery = { asked: 0, reading: null, server: null, askedSeconds: null };

/** A recovery that began to read, if `reading` is its number. */
function recovery(server: string, { asked = 1, reading = 0, askedSeconds = 0 } = {}): AskedRecovery {
  return { asked, reading, server, askedSeconds };
}

/** A replica whose charges go to the first server, and whose journal has so many. */
function startedAt(server = FIRST, found = NONE) {
  const journal = { added: 0 };
  const standing = new Standing(journal);
  standing.arrived(server);
  standing.started(found);
  return { standing, journal };
}

test('a replica that starts is not in doubt, unless counts were last put back at another server', () => {
  expect(startedAt().standing.isInDoubt).toBe(false);
  expect(startedAt(FIRST, recovery(FIRST)).standing.isInDoubt).toBe(false);
  expect(startedAt(FIRST, recovery(SECOND)).standing.isInDoubt).toBe(true);
});

test('a replica that comes to another server is in doubt, until it writes for a recovery there', () => {
  const { standing } = startedAt();
  standing.left();
  expect(standing.isInDoubt).toBe(false);
  standing.arrived(SECOND);
  expect(standing.isInDoubt).toBe(true);
  standing.writing(recovery(SECOND));
  expect(standing.isInDoubt).toBe(false);
});

test('a doubt survives connections: it ends only where counts are put back', () => {
  const { standing } = startedAt();
  standing.arrived(SECOND);
  standing.left();
  standing.arrived(FIRST);
  expect(standing.isInDoubt).toBe(true);
  standing.writing(recovery(FIRST));
  expect(standing.isInDoubt).toBe(false);
});

test('a replica that others left behind at their recovery is in doubt when it comes back to its server', () => {
  const { standing } = startedAt();
  standing.writing(recovery(SECOND));
  standing.written(recovery(SECOND), 0);
  expect(standing.isInDoubt).toBe(false);
  standing.left();
  standing.arrived(FIRST);
  expect(standing.isInDoubt).toBe(true);
});

test('a replica that wrote too late for a recovery is in doubt if it had counted, until everything is put back', () => {
  const { standing, journal } = startedAt();
  standing.writing(recovery(FIRST));
  standing.written(recovery(FIRST, { reading: 1 }), 0);
  expect(standing.isInDoubt).toBe(false);
  journal.added += 1;
  standing.writing(recovery(FIRST, { asked: 2, reading: 1 }));
  standing.written(recovery(FIRST, { asked: 2, reading: 2 }), 1);
  expect(standing.isInDoubt).toBe(true);
  standing.restoring();
  expect(standing.isInDoubt).toBe(false);
  // What this recovery does not wait for has to be put back by the next one.
  journal.added += 1;
  standing.writing(recovery(FIRST, { asked: 3, reading: 2 }));
  standing.written(recovery(FIRST, { asked: 3, reading: 3 }), 2);
  expect(standing.isInDoubt).toBe(true);
  standing.restoring();
  standing.leftOut();
  expect(standing.isInDoubt).toBe(true);
});

test('a replica that a recovery left out is not in doubt after one that waited for it', () => {
  const { standing, journal } = startedAt();
  journal.added += 1;
  standing.writing(recovery(FIRST));
  standing.written(recovery(FIRST, { reading: 1 }), 0);
  standing.writing(recovery(FIRST, { asked: 2, reading: 1 }));
  standing.written(recovery(FIRST, { asked: 2, reading: 1 }), 1);
  expect(standing.isInDoubt).toBe(false);
});

test('a replica that counted before the tables knew it is in doubt if a recovery has read since it started', () => {
  const journal = { added: 1 };
  const known = new Standing(journal);
  known.arrived(FIRST);
  known.started(recovery(FIRST, { reading: 1, askedSeconds: -1 }));
  expect(known.isInDoubt).toBe(true);
  const earlier = new Standing(journal);
  earlier.arrived(FIRST);
  earlier.started(recovery(FIRST, { reading: 1, askedSeconds: 3_600 }));
  expect(earlier.isInDoubt).toBe(false);
});

test('in a Cluster, no server is compared, but a recovery that did not wait counts', () => {
  const journal = { added: 0 };
  const standing = new Standing(journal);
  standing.started(NONE);
  standing.left();
  expect(standing.isInDoubt).toBe(false);
  journal.added = 1;
  standing.writing(recovery(''));
  standing.written(recovery('', { reading: 1 }), 0);
  expect(standing.isInDoubt).toBe(true);
});

test('in a Cluster, a replica is in doubt if it wrote in time only for a later recovery, which may be of other slots', () => {
  const journal = { added: 0 };
  const standing = new Standing(journal);
  standing.started(NONE);
  journal.added = 1;
  const later = recovery('', { asked: 2, reading: 1 });
  standing.writing(later);
  standing.written(later, 0);
  expect(standing.isInDoubt).toBe(true);
});

test('a replica that counted before the tables knew it is in doubt while a later recovery waits for it', () => {
  const standing = new Standing({ added: 1 });
  standing.started(recovery('', { asked: 2, reading: 1, askedSeconds: -1 }));
  expect(standing.isInDoubt).toBe(true);
});

import fc from 'fast-check';
import { expect, it } from 'vitest';
import { digestOfHex } from '../../../src/domain/token-digest.ts';
import { recordFacts } from '../../../src/facts/fact-record.ts';
import {
  principalKey,
  REVOCATIONS,
  readRevocation,
  readTarget,
  writeRevocation,
} from '../../../src/facts/revocation-message.ts';
import { type Revocation, Revocations, revoking } from '../../../src/facts/revocations.ts';
import type { MessageRecord, RecordedMessage } from '../../../src/store/shared-store.ts';
import { generatedCases } from '../../fixtures/generated-cases.ts';

const HEX = 'ab'.repeat(32);
const DIGEST = digestOfHex(HEX);
const token = { kind: 'token', digestHex: HEX } as const;
const principal = { kind: 'principal', id: 'person_1' } as const;

const isRevoked = (
  revocations: Revocations,
  digest: string,
  ...of: [principal: string, confirmedAtMs: number | undefined, nowMs: number]
) => revocations.refuse([digest], ...of) !== undefined;

function orders<T>(items: readonly T[]): T[][] {
  if (items.length === 0) return [[]];
  return items.flatMap((item, at) => orders(items.toSpliced(at, 1)).map((rest) => [item, ...rest]));
}

it('a revoked token is covered until the revocation expires', () => {
  const revocations = new Revocations();
  revocations.add({ revoked: token, atMs: 100, untilMs: 200 }, 100);
  expect(isRevoked(revocations, DIGEST, 'anybody', 150, 199)).toBe(true);
  expect(isRevoked(revocations, DIGEST, 'anybody', 150, 200)).toBe(false);
  expect(isRevoked(revocations, digestOfHex('cd'.repeat(32)), 'anybody', 150, 150)).toBe(false);
});

it("a principal's revocation covers tokens confirmed before it, or at an unknown time", () => {
  const revocations = new Revocations();
  revocations.add({ revoked: principal, atMs: 100, untilMs: 1000 }, 100);
  expect(isRevoked(revocations, DIGEST, 'person_1', 100, 150)).toBe(true);
  expect(isRevoked(revocations, DIGEST, 'person_1', undefined, 150)).toBe(true);
  expect(isRevoked(revocations, DIGEST, 'person_1', 101, 150)).toBe(false);
  expect(isRevoked(revocations, DIGEST, 'person_2', 50, 150)).toBe(false);
});

it('what is known already, or has expired, changes nothing', () => {
  const revocations = new Revocations();
  expect(revocations.add({ revoked: token, atMs: 1, untilMs: 9 }, 1)).toBe(true);
  expect(revocations.add({ revoked: token, atMs: 1, untilMs: 9 }, 1)).toBe(false);
  expect(revocations.add({ revoked: principal, atMs: 1, untilMs: 1 }, 1)).toBe(false);
});

it('the later of a revocation and its undoing wins, in any order of arrival', () => {
  const revoked = { revoked: token, atMs: 10, untilMs: 1000 };
  const undone = { revoked: token, atMs: 20, untilMs: 1000, isRemoved: true };
  const again = { revoked: token, atMs: 30, untilMs: 1000 };
  const atTheSameTime = { ...revoked, atMs: 20 };
  const isCovered = (...messages: Revocation[]) => {
    const revocations = new Revocations();
    for (const message of messages) revocations.add(message, 50);
    return isRevoked(revocations, DIGEST, 'anybody', undefined, 50);
  };
  for (const order of orders([revoked, undone])) expect(isCovered(...order)).toBe(false);
  for (const order of orders([revoked, undone, again])) expect(isCovered(...order)).toBe(true);
  for (const order of orders([atTheSameTime, undone])) expect(isCovered(...order)).toBe(true);
});

it('an undone revocation is remembered for as long as the revocation would have been', () => {
  const revocations = new Revocations();
  const undone = { revoked: principal, atMs: 20, untilMs: 100, isRemoved: true };
  revocations.add({ revoked: principal, atMs: 10, untilMs: 100 }, 20);
  revocations.add(undone, 20);
  expect([...revocations.all()]).toEqual([undone]);
  expect([99, 100].map((nowMs) => revocations.missingFrom(new Set(), nowMs).length)).toEqual([1, 0]);
});

it('a message is read as it was written', () => {
  for (const revoked of [token, principal, { kind: 'principal', id: HEX } as const]) {
    const revocation = { revoked, atMs: 1, untilMs: 2 };
    for (const one of [revocation, { ...revocation, isRemoved: true }])
      expect(readRevocation(writeRevocation(one), 0)).toEqual(one);
  }
});

it('a message that undoes has no kind: an older version must not read it as a revocation', () => {
  const message = writeRevocation({ revoked: token, atMs: 1, untilMs: 2, isRemoved: true });
  expect(JSON.parse(message)).not.toHaveProperty('kind');
});

it('a digest is a token, with or without its prefix and in any case; anything else is a principal', () => {
  expect(readTarget(HEX)).toEqual(token);
  expect(readTarget(`sha256:${HEX.toUpperCase()}`)).toEqual(token);
  expect(readTarget('person_1')).toEqual(principal);
});

it.each([
  '',
  '{',
  '{}',
  'null'.repeat(0),
  '{"kind":"token","target":"x","atMs":1,"untilMs":2}',
  '{"kind":1}',
])('a message that makes no sense is ignored: %s', (message) => {
  expect(readRevocation(message, 0)).toBeUndefined();
});

/** The record of Redis, whose calls run in the order of a scheduler. `published` has every message that replicas receive. */
function recordOf(scheduler: fc.Scheduler, nowMs: () => number) {
  const kept = new Map<string, number>();
  const published: string[] = [];
  const record = {
    nowMs: () => scheduler.schedule(Promise.resolve()).then(nowMs),
    messages: () =>
      scheduler
        .schedule(Promise.resolve())
        .then(() => [...kept].map(([text, untilMs]) => ({ text, untilMs }))),
    publish: (messages: readonly RecordedMessage[], replaced: readonly string[]) =>
      scheduler.schedule(Promise.resolve()).then(() => {
        for (const text of replaced) kept.delete(text);
        for (const { text, untilMs } of messages) kept.set(text, untilMs);
        published.push(...messages.map(({ text }) => text));
        return { received: 1, notPublished: undefined };
      }),
  };
  return { record: record as unknown as MessageRecord, published };
}

it('of revocations that are made at the same time, none ends another one earlier, at any replica', async () => {
  const start = 1_800_000_000_000;
  const lengths = fc.array(
    fc.integer({ min: 1, max: 500 }).map((minutes) => minutes * 60_000),
    {
      minLength: 2,
      maxLength: 4,
    },
  );
  const made = fc.asyncProperty(fc.scheduler(), lengths, fc.boolean(), async (scheduler, all, isFast) => {
    let ms = start;
    const clock = () => (isFast ? start : ms++);
    const { record, published } = recordOf(scheduler, clock);
    const making = all.map((forMs) => recordFacts(record, REVOCATIONS, revoking(principal, forMs)));
    await scheduler.waitFor(Promise.all(making));
    const longest = start + Math.max(...all);
    for (const order of [published, published.toReversed(), published.toSorted()]) {
      const replica = new Revocations(() => start);
      for (const text of order) {
        const revocation = readRevocation(text, start);
        if (revocation !== undefined) replica.add(revocation);
      }
      expect(replica.findInForce(principalKey('person_1'), start)?.untilMs).toBeGreaterThanOrEqual(longest);
    }
  });
  await fc.assert(made, { numRuns: generatedCases(500) });
});

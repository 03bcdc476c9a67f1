import { expect, it } from 'vitest';
import { digestOfHex } from '../../../src/domain/token-digest.ts';
import { readRevocation, readTarget, writeRevocation } from '../../../src/facts/revocation-message.ts';
import { type Revocation, Revocations } from '../../../src/facts/revocations.ts';

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

import { expect, it } from 'vitest';
import { readRevocation, readTarget, writeRevocation } from '../../../src/identity/revocation-message.ts';
import { Revocations } from '../../../src/identity/revocations.ts';
import { digestOfHex } from '../../../src/identity/token-digest.ts';

const HEX = 'ab'.repeat(32);
const DIGEST = digestOfHex(HEX);
const token = { kind: 'token', digestHex: HEX } as const;
const principal = { kind: 'principal', id: 'person_1' } as const;

it('a revoked token is covered until it need not be remembered', () => {
  const revocations = new Revocations();
  revocations.add({ revoked: token, atMs: 100, untilMs: 200 }, 100);
  expect(revocations.covers(DIGEST, 'anybody', 150, 199)).toBe(true);
  expect(revocations.covers(DIGEST, 'anybody', 150, 200)).toBe(false);
  expect(revocations.covers(digestOfHex('cd'.repeat(32)), 'anybody', 150, 150)).toBe(false);
});

it('a revoked principal is covered for what was vouched for before, or nobody knows when', () => {
  const revocations = new Revocations();
  revocations.add({ revoked: principal, atMs: 100, untilMs: 1000 }, 100);
  expect(revocations.covers(DIGEST, 'person_1', 100, 150)).toBe(true);
  expect(revocations.covers(DIGEST, 'person_1', undefined, 150)).toBe(true);
  expect(revocations.covers(DIGEST, 'person_1', 101, 150)).toBe(false);
  expect(revocations.covers(DIGEST, 'person_2', 50, 150)).toBe(false);
});

it('listeners hear of each revocation once', () => {
  const revocations = new Revocations();
  const heard: unknown[] = [];
  revocations.onRevoked((revoked) => heard.push(revoked));
  expect(revocations.add({ revoked: token, atMs: 1, untilMs: 9 }, 1)).toBe(true);
  expect(revocations.add({ revoked: token, atMs: 1, untilMs: 9 }, 1)).toBe(false);
  expect(revocations.add({ revoked: principal, atMs: 1, untilMs: 1 }, 1)).toBe(false);
  expect(heard).toEqual([token]);
});

it('a message says what was written', () => {
  for (const revoked of [token, principal, { kind: 'principal', id: HEX } as const]) {
    const revocation = { revoked, atMs: 1, untilMs: 2 };
    expect(readRevocation(writeRevocation(revocation))).toEqual(revocation);
  }
});

it('a digest is a token, with and without its mark and in any case; all else is a principal', () => {
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
])('a message that makes no sense is none: %s', (message) => {
  expect(readRevocation(message)).toBeUndefined();
});

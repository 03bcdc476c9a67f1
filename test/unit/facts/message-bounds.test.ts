import fc from 'fast-check';
import { expect, it } from 'vitest';
import { readPulse } from '../../../src/admin/fleet/pulse.ts';
import { LIVE_LIMITS } from '../../../src/facts/live-limits.ts';
import { REVOCATIONS } from '../../../src/facts/revocation-message.ts';
import { readWindow } from '../../../src/observe/usage/talkers.ts';
import { generatedCases } from '../../fixtures/generated-cases.ts';

const NOW_MS = 1_790_000_000_000;
const DAY_MS = 86_400_000;

const limit = {
  bucket: 'account-read',
  id: 'acct_1',
  limit: 5,
  atMs: NOW_MS,
  untilMs: NOW_MS + DAY_MS,
  why: 'launch',
  by: 'alice',
};

const token = `sha256:${'ab'.repeat(32)}`;
const revocation = { kind: 'token', target: token, atMs: NOW_MS, untilMs: NOW_MS + DAY_MS };

const readLimit = (change: object) => LIVE_LIMITS.read(JSON.stringify({ ...limit, ...change }), NOW_MS);
const readRevocation = (change: object) =>
  REVOCATIONS.read(JSON.stringify({ ...revocation, ...change }), NOW_MS);

it('what is written within the bounds is read', () => {
  expect(readLimit({})).toEqual(limit);
  expect(readLimit({ isRemoved: true, surplus: [1] })).toEqual({ ...limit, isRemoved: true });
  expect(readRevocation({})).toMatchObject({ revoked: { kind: 'token' }, atMs: NOW_MS });
});

it.each([
  { untilMs: Number.MAX_SAFE_INTEGER },
  { untilMs: NOW_MS + 8 * DAY_MS },
  { atMs: -1 },
  { atMs: NOW_MS + 2 * DAY_MS, untilMs: NOW_MS + 3 * DAY_MS },
  { atMs: 1.5 },
  { limit: 0 },
  { limit: 1e300 },
  { limit: '5' },
  { bucket: 'Account-Read' },
  { bucket: '__proto__' },
  { bucket: ['account-read'] },
  { id: '' },
  { id: 'a b' },
  { id: 'a\u0000' },
  { id: 'x'.repeat(257) },
  { why: 'line\nline' },
  { why: '\u001b[2J' },
  { why: '\u202egnp.exe' },
  { why: '\ud800' },
  { why: 'x'.repeat(201) },
  { by: null },
  { isRemoved: 'yes' },
])('a live limit with %j is ignored', (change) => {
  expect(readLimit(change)).toBeUndefined();
});

it.each([
  { atMs: 1e300 },
  { untilMs: 1e300 },
  { atMs: null },
  { target: 'x\u2028y', kind: 'principal' },
  { target: 'x'.repeat(300), kind: 'principal' },
  { kind: 'other' },
  { kind: 'token', target: 'person_1' },
])('a revocation with %j is ignored', (change) => {
  expect(readRevocation(change)).toBeUndefined();
});

it('a revocation whose reason is out of bounds is in force without it', () => {
  expect(readRevocation({ reason: { why: '\n', by: 5 } })).toEqual(readRevocation({}));
});

it('a plain message is a target within bounds, or is ignored', () => {
  const read = (text: string) => REVOCATIONS.read(text, NOW_MS)?.revoked;
  expect(read('person_1')).toEqual({ kind: 'principal', id: 'person_1' });
  for (const text of ['', 'two words', 'x'.repeat(257), 'ü', 'a\nb'])
    expect(read(text), text).toBeUndefined();
});

it('no text makes a reader throw, and what is read can be shown and written', () => {
  const text = fc.oneof(
    fc.json(),
    fc.string({ unit: 'binary' }),
    fc.record(mapped(limit)).map((value) => JSON.stringify(value)),
    fc.record(mapped(revocation)).map((value) => JSON.stringify(value)),
  );
  fc.assert(
    fc.property(text, (given) => {
      for (const kind of [LIVE_LIMITS, REVOCATIONS]) {
        const fact = kind.read(given, NOW_MS);
        if (fact === undefined) continue;
        expect(() => new Date(fact.untilMs).toISOString() + new Date(fact.atMs).toISOString()).not.toThrow();
      }
    }),
    { numRuns: generatedCases(2_000) },
  );
});

it('reading a part of a text leaves the rest of it for others', () => {
  const extract = { floor: 0, rows: [] };
  const ofWindow = { accounts: extract, organizations: extract };
  const published = { '10s': ofWindow, '1m': ofWindow, '10m': ofWindow, pulse: { format: 1 } };
  expect(readWindow(published, '10s')).not.toHaveProperty('pulse');
  expect(published).toHaveProperty('pulse');
});

it('no summary makes a reader throw', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      expect(readWindow(value, '10s')).toBeUndefined();
      expect(readPulse(value, 0)).toBeUndefined();
      expect(readPulse({ pulse: value }, 0)).toBeUndefined();
    }),
  );
});

/** Each member as it is, or anything at all. */
function mapped<T extends object>(model: T): { [K in keyof T]: fc.Arbitrary<unknown> } {
  const members = Object.entries(model).map(([name, value]) => [
    name,
    fc.oneof(fc.constant(value), fc.jsonValue(), fc.double(), fc.string({ unit: 'binary' })),
  ]);
  return Object.fromEntries(members) as { [K in keyof T]: fc.Arbitrary<unknown> };
}

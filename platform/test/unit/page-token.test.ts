import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createTokenSealer } from '../../src/lists/token.ts';

const key = randomBytes(32);

test('a token gives back its sort key to its own query, in any process with the key', () => {
  fc.assert(
    fc.property(fc.array(fc.string()), fc.string(), (after, query) => {
      const token = createTokenSealer(key, 60, Date.now).seal(after, query);
      expect(token).toMatch(/^[A-Za-z0-9_-]+$/);
      expect(createTokenSealer(key, 60, Date.now).open(token, query)).toEqual({ after, isExpired: false });
      expect(createTokenSealer(key, 60, Date.now).open(token, `${query}.`)).toBeUndefined();
    }),
  );
});

test('a token is expired after its lifetime', () => {
  let nowMs = 1_000_000;
  const sealer = createTokenSealer(key, 60, () => nowMs);
  const token = sealer.seal(['7'], 'q');
  nowMs += 59_999;
  expect(sealer.open(token, 'q')).toEqual({ after: ['7'], isExpired: false });
  nowMs += 1;
  expect(sealer.open(token, 'q')).toEqual({ after: ['7'], isExpired: true });
});

test('no modified, truncated or invented token is accepted', () => {
  const sealer = createTokenSealer(key, 60, Date.now);
  const token = Buffer.from(sealer.seal(['7'], 'q'), 'base64url');
  for (let i = 0; i < token.length; i++) {
    const changed = Buffer.from(token);
    changed.writeUInt8(changed.readUInt8(i) ^ 1, i);
    expect(sealer.open(changed.toString('base64url'), 'q')).toBeUndefined();
    expect(sealer.open(token.subarray(0, i).toString('base64url'), 'q')).toBeUndefined();
  }
  expect(
    createTokenSealer(randomBytes(32), 60, Date.now).open(token.toString('base64url'), 'q'),
  ).toBeUndefined();
});

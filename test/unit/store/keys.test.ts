import fc from 'fast-check';
import { expect, test } from 'vitest';
import { bucketKey, bucketOf } from '../../../src/store/keys.ts';
import { generatedCases } from '../../fixtures/generated-cases.ts';

const anyId = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 40 }),
  fc.string({ unit: fc.constantFrom('{', '}', ':', '%', '#', 'a', '\ud800', 'é', '\0'), maxLength: 200 }),
);

test('a plain id is part of its key unchanged', () => {
  expect(bucketKey('weir', 'org_1', 'account-read', 'acct_1')).toBe('weir:1:{org_1}:account-read:acct_1');
});

test('the name of a bucket can be read from its key, whatever the ids', () => {
  for (const [tag, id] of [
    ['org_1', 'acct_1'],
    ['a}:b:{c', ':x:'],
    ['', ''],
  ] as const) {
    expect(bucketOf(bucketKey('weir', tag, 'account-read', id))).toBe('account-read');
  }
  expect(bucketOf('weir:1:start')).toBe('');
});

test('no id can move a key to another slot: what Redis hashes is the escaped tag alone', () => {
  fc.assert(
    fc.property(anyId, anyId, anyId, (tag, id, otherId) => {
      const hashed = hashTag(bucketKey('weir', tag, 'account-read', id));
      expect(hashed).not.toBe('');
      expect(hashTag(bucketKey('weir', tag, 'organization-read', otherId))).toBe(hashed);
    }),
  );
});

test('two ids never share a key', () => {
  fc.assert(
    fc.property(anyId, anyId, anyId, anyId, (tagA, idA, tagB, idB) => {
      const isSame = tagA === tagB && idA === idB;
      const areKeysSame =
        bucketKey('weir', tagA, 'account-read', idA) === bucketKey('weir', tagB, 'account-read', idB);
      expect(areKeysSame).toBe(isSame);
    }),
    { numRuns: generatedCases(500) },
  );
});

test.each([
  ['', '%'],
  ['%', '%25'],
  ['a{b}:c', 'a%7Bb%7D%3Ac'],
  ['zoë', 'zo%C3%AB'],
  ['\ud800', '%uD800'],
  ['�', '%EF%BF%BD'],
])('%j is written as %s', (id, escaped) => {
  expect(bucketKey('weir', 't', 'b', id)).toBe(`weir:1:{t}:b:${escaped}`);
});

test('every character but letters, digits, and four marks is written as its bytes', () => {
  const id = String.fromCharCode(...Array(256).keys());
  const bytes = (character: string) =>
    Buffer.from(character).toString('hex').toUpperCase().replace(/../g, '%$&');
  for (const one of id) {
    const written = /[A-Za-z0-9._~-]/.test(one) ? one : bytes(one);
    expect(bucketKey('weir', 't', 'b', one)).toBe(`weir:1:{t}:b:${written}`);
  }
});

test('a long id of characters that are escaped takes about as long as one of letters', () => {
  const timeOf = (character: string) => {
    const id = character.repeat(60_000);
    const times = Array.from({ length: 9 }, () => {
      const startMs = performance.now();
      bucketKey('weir', 't', 'b', id);
      return performance.now() - startMs;
    });
    return Math.min(...times);
  };
  expect(timeOf('/') / timeOf('a')).toBeLessThan(30);
});

test('a key stays short for an id of 10 kB, and different long ids keep different keys', () => {
  const long = 'x'.repeat(10_000);
  expect(bucketKey('weir', long, 'account-read', long).length).toBeLessThan(200);
  expect(bucketKey('weir', 't', 'b', `${long}1`)).not.toBe(bucketKey('weir', 't', 'b', `${long}2`));
});

/** What Redis Cluster hashes: between the first `{` and the next `}`. */
function hashTag(key: string): string {
  const start = key.indexOf('{');
  return key.slice(start + 1, key.indexOf('}', start));
}

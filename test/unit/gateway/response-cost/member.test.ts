import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { JsonPointer } from '../../../../src/domain/settlement/json-pointer.ts';
import { type Found, pointsIn, pointsInParsed } from '../../../../src/gateway/response-cost/member.ts';
import { outermostMember } from '../../../../src/gateway/response-cost/outermost-member.ts';

const find = (text: string, pointer: string): Found => pointsIn(Buffer.from(text), new JsonPointer(pointer));

const LONG_TEXT = 'x'.repeat(8_192);

describe('the points of a member', () => {
  test.each<[string, string, Found]>([
    ['{"usage":{"total_tokens":812}}', '/usage/total_tokens', 812],
    [' {"usage" : {"total_tokens" : 812 } , "id":"x"} \r\n', '/usage/total_tokens', 812],
    ['{"a":{"usage":{"total_tokens":5}}}', '/usage/total_tokens', 'missing'],
    ['{"content":"\\"usage\\":{\\"total_tokens\\":9}","usage":{"total_tokens":1}}', '/usage/total_tokens', 1],
    ['{"usage":{"total_tokens":1},"content":"{\\"total_tokens\\":9}\\\\"}', '/usage/total_tokens', 1],
    ['{"usage":null}', '/usage/total_tokens', 'missing'],
    ['{"usage":{"total_tokens":null}}', '/usage/total_tokens', 'missing'],
    ['{"usage":{"total_tokens":"812"}}', '/usage/total_tokens', 'invalid'],
    ['{"usage":{"total_tokens":{"total_tokens":3}}}', '/usage/total_tokens', 'invalid'],
    ['{"usage":{"total_tokens":[3]}}', '/usage/total_tokens', 'invalid'],
    ['{"n":true}', '/n', 'invalid'],
    ['{"n":-0}', '/n', 0],
    ['{"n":-1}', '/n', 'invalid'],
    ['{"n":1.5}', '/n', 2],
    ['{"n":0.0001}', '/n', 1],
    ['{"n":1e3}', '/n', 1000],
    ['{"n":1e400}', '/n', 'invalid'],
    ['{"n":1e-400}', '/n', 0],
    ['{"n":2000000001}', '/n', 'invalid'],
    ['{"n":01}', '/n', 'invalid'],
    ['{"n":+1}', '/n', 'invalid'],
    ['{"n":NaN}', '/n', 'invalid'],
    ['{"n":1,"n":2}', '/n', 2],
    ['{"u":{"n":1},"u":{}}', '/u/n', 'missing'],
    ['{"u":{"v":{"n":1},"v":3,"n":9}}', '/u/v/n', 'missing'],
    ['{"\\u006e":7}', '/n', 'missing'],
    ['{"gr\\u00f6sse":7}', '/größe', 'missing'],
    ['{"gr\\u00f6\\u00dfe":7}', '/größe', 7],
    ['{"größe":7}', '/größe', 7],
    ['{"a/b":7}', '/a~1b', 7],
    ['{"a\\/b":7}', '/a~1b', 7],
    ['{"~":7}', '/~0', 7],
    ['{"":7}', '/', 7],
    ['{"x":[{"n":1},{"n":2}]}', '/x/1/n', 2],
    ['{"x":{"1":{"n":4}}}', '/x/1/n', 4],
    ['[{"n":1}]', '/0/n', 1],
    ['[{"n":1}]', '/n', 'missing'],
    ['{"n":1}\n{"n":2}\n', '/n', 2],
    ['{"n":1}{"m":2}', '/n', 'missing'],
    ['{"n":1', '/n', 'missing'],
    ['{"n":1}]', '/n', 'missing'],
    ['', '/n', 'missing'],
    ['}', '/n', 'missing'],
    ['"n":1}', '/n', 1],
    ['n":1}', '/n', 'missing'],
    [':1}', '/n', 'missing'],
    ['<html>{"n":1}</html>', '/n', 'missing'],
  ])('%s at %s are %s', (text, pointer, found) => {
    expect(find(text, pointer)).toBe(found);
  });

  test('are those that JSON.parse finds, in every document', () => {
    // One name with an escape: JSON.parse of Node 24.21 takes the key "\\" for "\"" where it has read such objects before.
    const name = fc.constantFrom('a', 'b', 'ü', 'a/b', '"', ':', 'total');
    const { document } = fc.letrec((tie) => ({
      document: fc.oneof(
        { depthSize: 'medium' },
        fc.constantFrom(0, 1, 2.5, -1, null, true, '"a":1', '\\', '{', '}]', 'ü'),
        fc.array(tie('document'), { maxLength: 3 }),
        fc.dictionary(name, tie('document'), { maxKeys: 4 }),
      ),
    }));
    const written = fc.constantFrom<(value: unknown) => string>(
      (value) => JSON.stringify(value),
      (value) => JSON.stringify(value, null, 2),
    );
    const root = fc.dictionary(name, document, { maxKeys: 4 });
    fc.assert(
      fc.property(
        root,
        written,
        fc.array(name, { minLength: 1, maxLength: 3 }),
        fc.constantFrom<(value: object) => object>(
          (value) => value,
          // Long enough to be searched for the name.
          (value) => ({ ...value, '': LONG_TEXT }),
          (value) => ({ '': LONG_TEXT, ...value }),
          (value) => ({ '': [LONG_TEXT, value], ...value, ' ': [value, LONG_TEXT] }),
        ),
        (value, write, names, lengthened) => {
          const text = write(lengthened(value));
          const path = `/${names.map((one) => one.replaceAll('~', '~0').replaceAll('/', '~1')).join('/')}`;
          expect(find(text, path), text).toBe(pointsInParsed(text, new JsonPointer(path)));
        },
      ),
      { numRuns: 5_000 },
    );
  });

  test.each<[string, string, Found]>([
    ['{"usage":{"n":1},"x":"…"}', '/usage/n', 1],
    ['{ "id": "a", "usage" : { "n" : 1 } , "x":"…"}', '/usage/n', 1],
    ['{"usage":{"n":1,"m":"}"},"x":"…"}', '/usage/n', 1],
    ['{"usage":{"n":"1"},"x":"…"}', '/usage/n', 'invalid'],
    ['{"usage":{"m":1},"x":"…"}', '/usage/n', 'missing'],
    ['{"usage":{"n":1},"x":"…","usage":{"n":2}}', '/usage/n', 2],
    ['{"usage":{"n":1},"x":"…","usage":{}}', '/usage/n', 'missing'],
    ['{"usage":{"n":1,"n":2},"x":"…"}', '/usage/n', 2],
    ['{"a":{"usage":{"n":1}},"x":"…"}', '/usage/n', 'missing'],
    ['{"a":{"b":1,"usage":{"n":1}},"x":"…"}', '/usage/n', 'missing'],
    ['{"a":"\\"usage\\":{","x":"…"}', '/usage/n', 'missing'],
    ['{"a":"usage","x":"…"}', '/usage/n', 'missing'],
    ['{"a":["usage"],"n":1,"x":"…"}', '/n', 1],
    ['{"usage":{"n":1},"x":"…"}\n{"m":2}\n', '/usage/n', 'missing'],
    ['{"usage":{"n":1},"x":"…"}\n{"usage":{"n":2}}\n', '/usage/n', 2],
    ['{"usage":{"n":1,"y":"…"}}', '/usage/n', 1],
  ])('at the beginning of a long text: %s at %s are %s', (text, pointer, found) => {
    expect(find(text.replace('…', LONG_TEXT), pointer)).toBe(found);
  });

  const words = Array.from({ length: 1_000 }, (_, index) => ({ index, n: 3 }));
  const numbers = Object.fromEntries(words.map(({ index }) => [`_${index}`, index]));
  test.each<[string, object, Found]>([
    ['before many objects', { n: 1, words }, 1],
    ['behind many objects', { words, n: 1 }, 1],
    ['among many objects', { words, n: 1, behind: words }, 1],
    ['among many numbers', { ...numbers, n: 1, behind: numbers }, 1],
    ['only within the last object', { words: [...Array(2_000).fill(0), { n: 1 }] }, 'missing'],
    ['outermost and within others', { words: Array(2_000).fill(0), a: { n: 2 }, n: 1, b: { n: 3 } }, 1],
    ['also as a value', { words: Array(5_000).fill(0), n: 1, b: 'n', c: ['n', '"n":2'] }, 1],
  ])('are found %s', (_, value, found) => {
    for (const indent of [0, 2]) expect(find(JSON.stringify(value, null, indent), '/n')).toBe(found);
  });

  test('in a text that is cut off are missing', () => {
    const text = JSON.stringify({ usage: 1, behind: Array(5_000).fill({}) });
    for (const cut of [text.slice(0, -1), text.slice(0, -3), `${text}"`])
      expect(find(cut, '/usage')).toBe('missing');
  });

  test('need nothing but the member, wherever it stands', () => {
    const others = Array.from({ length: 20_000 }, (_, index) => ({ index }));
    const pointer = new JsonPointer('/usage');
    const documents = [
      { usage: 1, others },
      { others, usage: 1 },
      { others, usage: 1, behind: others },
    ].map((value) => outermostMember(Buffer.from(JSON.stringify(value)), pointer));
    expect(documents).toEqual(Array(3).fill('{"usage":1}'));
    expect(outermostMember(Buffer.from(JSON.stringify({ others })), pointer)).toBe('{}');
  });
});

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { JsonPointer } from '../../../../src/domain/settlement/json-pointer.ts';
import { earlyMember } from '../../../../src/gateway/response-cost/early-member.ts';
import { type Found, pointsIn, pointsInParsed } from '../../../../src/gateway/response-cost/member.ts';

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
        fc.boolean(),
        (value, write, names, isLong) => {
          // Long enough to be read from its beginning as well.
          const text = write(isLong ? { ...value, '': LONG_TEXT } : value);
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

  test('at the beginning are found without a look at what follows', () => {
    const words = Array.from({ length: 50_000 }, (_, index) => ({ index }));
    const [early, late] = [
      { usage: 1, words },
      { words, usage: 1 },
    ].map((value) => Buffer.from(JSON.stringify(value)));
    const pointer = new JsonPointer('/usage');
    expect([early, late].map((text) => earlyMember(text as Buffer, pointer))).toEqual([
      '{"usage":1}',
      undefined,
    ]);
  });
});

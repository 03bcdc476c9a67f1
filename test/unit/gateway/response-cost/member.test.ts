import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { JsonPointer } from '../../../../src/domain/settlement/json-pointer.ts';
import type { FoundPoints } from '../../../../src/gateway/response-cost/json-bytes.ts';
import { keyScan } from '../../../../src/gateway/response-cost/key-scan.ts';
import { pointsIn, pointsInParsed } from '../../../../src/gateway/response-cost/member.ts';
import { generatedCases } from '../../../fixtures/generated-cases.ts';

const LONG_TEXT = 'x'.repeat(8_192);

/** An object as it is written: a name may occur twice. */
class Members {
  readonly all: readonly (readonly [string, unknown])[];

  constructor(all: readonly (readonly [string, unknown])[]) {
    this.all = all;
  }
}

function write(value: unknown, space: string): string {
  const written = (parts: readonly string[]) => parts.map((part) => `${space}${part}${space}`).join();
  if (Array.isArray(value)) return `[${written(value.map((each) => write(each, space)))}]`;
  if (!(value instanceof Members)) return JSON.stringify(value);
  return `{${written(value.all.map(([name, each]) => `${JSON.stringify(name)}${space}:${space}${write(each, space)}`))}}`;
}

const machines = [
  { machine: 'with WebAssembly', scan: keyScan() },
  { machine: 'without WebAssembly', scan: 'impossible' } as const,
];

describe.each(machines)('the points of a member, on a machine $machine,', ({ scan }) => {
  const find = (text: string, pointer: string): FoundPoints =>
    pointsIn(Buffer.from(text), new JsonPointer(pointer), scan);

  test.each<[string, string, FoundPoints]>([
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
    ['{"\\u006e":7}', '/n', 7],
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
    ['{"x":[{"n":1}]}\n{"x":[{"n":2}]}\n', '/x/0/n', 2],
    ['[{"n":1}]\r\n [{"n":2}] ', '/0/n', 2],
    ['[{"n":1}]{"x":[]}', '/x/0/n', 'missing'],
    ['{"x":[1]}\n5', '/x/0', 'missing'],
    ['5 "x" null {"x":[1]}', '/x/0', 1],
    ['{"a":"]}\\"","x":["{[\\\\",1]}', '/x/1', 1],
    ['{"x":[1]}{"a":"]}\\"","x":["{[\\\\",2]}', '/x/1', 2],
    ['\uFEFF{"x":[1]}', '/x/0', 1],
    ['\uFEFF [1]', '/0', 1],
    ['\uFEFF{"n":1}', '/n', 1],
    ['{"a":{"x":[1]}', '/x/0', 'missing'],
    ['[{"x":[1]}', '/x/0', 'missing'],
    ['[0,{"x":[1]}', '/x/0', 'missing'],
    ['{"x":[1],}', '/x/0', 'missing'],
    ['{"x":[1]', '/x/0', 'missing'],
    ['{"x":[1]}]', '/x/0', 'missing'],
    [']', '/0', 'missing'],
    ['"]', '/0', 'missing'],
    ['', '/0', 'missing'],
    ['[{"n":1}]', '/n', 'missing'],
    ['{"n":1}\n{"n":2}\n', '/n', 2],
    ['{"n":1}{"m":2}', '/n', 'missing'],
    ['{"n":1', '/n', 'missing'],
    ['{"n":1}]', '/n', 'missing'],
    ['', '/n', 'missing'],
    ['}', '/n', 'missing'],
    ['"n":1}', '/n', 'missing'],
    ['n":1}', '/n', 'missing'],
    [':1}', '/n', 'missing'],
    ['<html>{"n":1}</html>', '/n', 'missing'],
  ])('%s at %s are %s', (text, pointer, found) => {
    expect(find(text, pointer)).toBe(found);
  });

  test('are those that JSON.parse finds, in every document', () => {
    // One name with an escape: JSON.parse of Node 24.21 takes the key "\\" for "\"" where it has read such objects before.
    const name = fc.constantFrom('a', 'b', 'ü', 'a/b', '"', ':', 'total');
    const { members } = fc.letrec<{ document: unknown; members: Members }>((tie) => ({
      document: fc.oneof(
        { depthSize: 'medium' },
        fc.constantFrom(0, 1, 2.5, -1, null, true, '"a":1', '\\', '{', '}]', 'ü'),
        fc.array(tie('document'), { maxLength: 3 }),
        tie('members'),
        // What stands behind it has to be found forwards, at any place of a block.
        fc.nat(70).map((length) => `${LONG_TEXT}${'\\"'.repeat(length)}`),
      ),
      members: fc.array(fc.tuple(name, tie('document')), { maxLength: 5 }).map((each) => new Members(each)),
    }));
    const path = fc.array(name, { minLength: 1, maxLength: 3 });
    const before = fc.constantFrom('', '{"a":1}\n', ' ');
    fc.assert(
      fc.property(members, path, fc.constantFrom('', ' ', '\n  '), before, (value, names, space, first) => {
        const text = write(value, space);
        const pointer = `/${names.map((one) => one.replaceAll('~', '~0').replaceAll('/', '~1')).join('/')}`;
        expect(find(`${first}${text}`, pointer), text).toBe(pointsInParsed(text, new JsonPointer(pointer)));
      }),
      { numRuns: generatedCases(5_000) },
    );
  });

  test.each<[string, string, FoundPoints]>([
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
    ['{"x":"…","usage":{"n":1,"y":"…"}}', '/usage/n', 1],
    ['{"data":{"x":"…","usage":{"n":1,"y":"…"}},"x":"…"}', '/data/usage/n', 1],
    ['{"data":{"x":"…","usage":{"n":1}},"x":"…","usage":{"n":2}}', '/data/usage/n', 1],
    ['{"data":{"usage":{"n":1},"x":"…"},"data":{"x":"…"}}', '/data/usage/n', 'missing'],
    ['{"data":{"usage":{"n":1},"x":"…"},"data":3}', '/data/usage/n', 'missing'],
    ['{"data":[{"usage":{"n":1},"x":"…"}]}', '/data/usage/n', 'missing'],
    ['{"data":{"usage":{"n":{"n":3}},"x":"…"}}', '/data/usage/n', 'invalid'],
    ['{"data":{"usage":{"n":[null]},"x":"…"}}', '/data/usage/n', 'invalid'],
    ['{"data":{"usage":{"n":null},"x":"…"}}', '/data/usage/n', 'missing'],
    ['{"a_name_of_20_letters":1,"x":"…"}', '/a_name_of_20_letters', 1],
    ['{"a_name_of_20_litters":1,"x":"…"}', '/a_name_of_20_letters', 'missing'],
    ['{"n":1,"x":"…","b":"n"}', '/n', 1],
  ])('at the beginning of a long text: %s at %s are %s', (text, pointer, found) => {
    expect(find(text.replaceAll('…', LONG_TEXT), pointer)).toBe(found);
  });

  const words = Array.from({ length: 1_000 }, (_, index) => ({ index, n: 3 }));
  const numbers = Object.fromEntries(words.map(({ index }) => [`_${index}`, index]));
  test.each<[string, object, FoundPoints]>([
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
});

test('WebAssembly runs on the machine of the tests', () => {
  expect(keyScan()).not.toBe('impossible');
});

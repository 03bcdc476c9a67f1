import fc from 'fast-check';
import { expect, test } from 'vitest';
import { MOST_KEPT } from '../../../../src/gateway/response-cost/collected-bytes.ts';
import { keyScan } from '../../../../src/gateway/response-cost/key-scan.ts';
import { generatedCases } from '../../../fixtures/generated-cases.ts';

const scan = keyScan();
if (scan === 'impossible') throw new Error('WebAssembly cannot run here');
const { begin, next } = scan;

/** The same, by a regular expression. A reverse solidus outside of a string, where JSON has none, escapes a quotation mark too. */
function nextIn(text: string, from: number, name: string): number {
  let depth = 0;
  for (const { 0: token, index } of text.slice(from).matchAll(/"(?:[^"\\]|\\.)*"?|\\["\\]|[[\]{}]/gs)) {
    const isClosing = /^[\]}]$/.test(token);
    const isFound = isClosing || text.startsWith(name, from + index);
    if (depth === 0 && isFound) return from + index;
    if (/^[[{]$/.test(token)) depth++;
    if (isClosing) depth--;
  }
  return -1;
}

// Blocks of 64 bytes meet at any place of a string, and of a row of reverse solidi.
const inString = fc.constantFrom(
  ...['{', '}', '[', ']', '\\"', '\\\\', '\\', '\\'.repeat(63), 'x'.repeat(40), '\u007f', 'name'],
);
const string = fc.array(inString, { maxLength: 8 }).map((parts) => `"${parts.join('')}"`);
const part = fc.oneof(
  { weight: 2, arbitrary: string },
  { weight: 3, arbitrary: fc.constantFrom('{', '}', '[', ']', '{}', '[{', '}]', ':', ',', '12', ';') },
  { weight: 1, arbitrary: fc.constantFrom('"name"', '"nam"', '"name', 'name"', ' '.repeat(30)) },
  // Only 16 bytes of a name are compared.
  { weight: 1, arbitrary: fc.constantFrom('"a_name_of_many_bytes"', '"a_name_of_many_bites"') },
);

test('the next name in an object, or its end, is found in every text', () => {
  const names = ['name', 'a_name_of_many_bytes'];
  fc.assert(
    fc.property(fc.array(part, { maxLength: 40 }), fc.nat(70), fc.nat(1), (parts, before, name) => {
      const text = `${'{'.repeat(before)}${parts.join('')}`;
      begin(
        Buffer.from(text),
        names.map((each) => Buffer.from(each)),
      );
      const beginning = `"${`${names[name]}"`.slice(0, 16)}`;
      const found = nextIn(text, before, beginning);
      expect(next(before, false, name), text).toBe(found);
      // It goes on within the string that was found.
      if (text[found] !== '"') return;
      const end = /(?:[^"\\]|\\.)*"?/sy;
      end.lastIndex = found + 1;
      const behind = found + 1 + (end.exec(text)?.[0].length ?? 0);
      expect(next(found + 1, true, name), text).toBe(nextIn(text, behind, beginning));
    }),
    { numRuns: generatedCases(5_000) },
  );
});

test('a text may have 1 MiB', () => {
  const text = Buffer.alloc(MOST_KEPT + 1, ' ');
  text.write('}', MOST_KEPT - 1);
  expect(begin(text.subarray(0, MOST_KEPT), [])).toBe(true);
  expect(next(0, false, 0)).toBe(MOST_KEPT - 1);
  expect(begin(text, [])).toBe(false);
});

test('a shorter text is not read beyond its end', () => {
  begin(Buffer.from('[]"name"'.repeat(100)), [Buffer.from('name')]);
  begin(Buffer.from('{'), [Buffer.from('name')]);
  expect(next(1, false, 0)).toBe(-1);
});

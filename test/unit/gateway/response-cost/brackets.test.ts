import fc from 'fast-check';
import { expect, test } from 'vitest';
import { openedBetween } from '../../../../src/gateway/response-cost/brackets.ts';
import { MOST_KEPT } from '../../../../src/gateway/response-cost/collected-bytes.ts';

/** The same, by a regular expression. A reverse solidus outside of a string, where JSON has none, escapes a quotation mark too. */
function opened(text: string): number {
  const tokens = text.match(/"(?:[^"\\]|\\.)*"?|\\["\\]|[[\]{}]/gs) ?? [];
  const count = (brackets: readonly string[]) => tokens.filter((token) => brackets.includes(token)).length;
  return count(['{', '[']) - count(['}', ']']);
}

test('brackets outside of strings are counted, in every text', () => {
  // Blocks of 64 bytes meet at any place of a string, and of a row of reverse solidi.
  const inString = fc.constantFrom(
    '{',
    '}',
    '[',
    ']',
    '\\"',
    '\\\\',
    '\\',
    '\\'.repeat(63),
    'ü',
    'x'.repeat(40),
  );
  const string = fc.array(inString, { maxLength: 8 }).map((parts) => `"${parts.join('')}"`);
  const part = fc.oneof(
    string,
    fc.constantFrom('{', '}', '[', ']', ':', ',', ' '.repeat(30), '12', ';', '\u007f'),
  );
  fc.assert(
    fc.property(fc.array(part, { maxLength: 40 }), fc.nat(70), (parts, before) => {
      const text = parts.join('');
      const bytes = Buffer.from(`${'{'.repeat(before)}${text}{{{`);
      expect(openedBetween(bytes, before, bytes.length - 3), text).toBe(opened(text));
    }),
    { numRuns: 5_000 },
  );
});

test('a part may have 1 MiB', () => {
  const text = Buffer.alloc(MOST_KEPT + 1, '[');
  expect(openedBetween(text, 0, MOST_KEPT)).toBe(MOST_KEPT);
  expect(openedBetween(text, 0, MOST_KEPT + 1)).toBeUndefined();
});

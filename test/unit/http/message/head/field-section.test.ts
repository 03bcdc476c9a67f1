import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { GrammarError } from '../../../../../src/http/message/grammar.ts';
import { FieldSection } from '../../../../../src/http/message/head/field-section.ts';
import { readFields, textHead } from '../../../../../src/http/message/head/read-fields.ts';
import { generatedCases } from '../../../../fixtures/generated-cases.ts';

const read = (lines: string) => readFields(textHead(lines), 0, lines.length);

/** Names and values, and the lines that they were sent in. */
const sent = fc.array(
  fc.record({
    name: fc.stringMatching(/^X-[A-Za-z0-9_.]{1,6}$/),
    value: fc.stringMatching(/^[!-~\x80-\xff](?:[\t -~\x80-\xff]{0,9}[!-~\x80-\xff])?$|^$/),
    before: fc.constantFrom(' ', '', '  ', '\t', ' \t'),
    behind: fc.constantFrom('', '', ' ', '\t'),
  }),
  { maxLength: 12 },
);

describe('the field lines of a message', () => {
  it('give the names and values that were sent, and the lines that are kept', () => {
    fc.assert(
      fc.property(sent, fc.nat(), (fields, mask) => {
        const lines = fields.map(
          ({ name, value, before, behind }) => `${name}:${before}${value}${behind}\r\n`,
        );
        const section = read(lines.join(''));
        expect(section.list).toEqual(fields.flatMap(({ name, value }) => [name, value]));
        expect(FieldSection.of(section.list).list).toEqual(section.list);
        const isKept = ({ text }: { readonly text: string }) => ((mask >> text.length) & 1) === 1;
        const kept = fields.filter(({ name }) => isKept({ text: name }));
        expect(section.linesOf(isKept)).toBe(kept.map(({ name, value }) => `${name}: ${value}\r\n`).join(''));
      }),
      { numRuns: generatedCases(5_000) },
    );
  });

  it('are not confused where names have the same hash', () => {
    for (const names of [
      ['X-Aa', 'X-BB'],
      ['X-BB', 'X-Aa'],
    ]) {
      const section = read(names.map((name) => `${name}: ${name}\r\n`).join(''));
      expect(section.list).toEqual(names.flatMap((name) => [name, name]));
      for (const name of names) expect(section.get(name.toLowerCase())).toBe(name);
    }
  });

  it('may have more names than are remembered', () => {
    const names = Array.from({ length: 5_000 }, (_, index) => `X-${index}-${'y'.repeat(index % 90)}`);
    for (const name of [...names, ...names]) expect(read(`${name}: 1\r\n`).list).toEqual([name, '1']);
  });

  it.each([
    ['a line without a colon', 'X-A\r\n'],
    ['a name that is empty', ': 1\r\n'],
    ['space before the colon', 'X-A : 1\r\n'],
    ['a folded line', 'X-A: 1\r\n 2\r\n'],
    ['a bare line feed', 'X-A: 1\nX-B: 2\r\n'],
    ['a bare carriage return', 'X-A: 1\r2\r\n'],
    ['a control octet', 'X-A: \0\r\n'],
    ['a length twice', 'Content-Length: 1\r\nContent-Length: 1\r\n'],
    ['a padded length', 'Content-Length:  1\r\n'],
    ['a length with a sign', 'content-length: +1\r\n'],
    ['a length beside chunks', 'Transfer-Encoding: chunked\r\nContent-Length: 1\r\n'],
    ['another coding', 'Transfer-Encoding: gzip, chunked\r\n'],
  ])('are refused with %s', (_, lines) => {
    expect(() => read(lines)).toThrow(GrammarError);
  });

  it.each([
    ['a line break in a value', ['X-A', '1\r\nX-B: 2']],
    ['a space in a name', ['X A', '1']],
    ['a character that is not one octet', ['X-A', '\u0141']],
  ])('are not made of %s', (_, fields) => {
    expect(() => FieldSection.of(fields)).toThrow(TypeError);
  });
});

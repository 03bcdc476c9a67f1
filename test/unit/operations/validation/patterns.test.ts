import { createContext, Script } from 'node:vm';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Meter, TooComplex } from '../../../../src/operations/validation/engine/meter.ts';
import { compilePattern } from '../../../../src/operations/validation/engine/patterns.ts';
import { generatedCases } from '../../../fixtures/generated-cases.ts';
import { expectLinearTime } from '../../../fixtures/growth.ts';

/** Its clock stands still. */
const meter = new Meter(() => 0);

/** Characters that engines disagree on: line ends, white space, letters in other cases, halves of surrogate pairs. */
const character = fc.constantFrom(
  ...['a', 'b', 'A', '_', '-', '0', '9', '/', '.', ' ', '\n', '\r', '\t', '\v'],
  ...['\u00a0', '\u2028', '\ufeff', '\u180e', '\u212a', 'é', '\u0301', '\ud83d', '\udc4d', '\0', '\uffff'],
);
const text = fc.array(character, { maxLength: 8 }).map((parts) => parts.join(''));

const atom = fc.oneof(
  fc.constantFrom(
    'a',
    'b',
    '.',
    '\\d',
    '\\D',
    '\\w',
    '\\W',
    '\\s',
    '\\S',
    '\\n',
    '\\/',
    '\\-',
    '\\_',
    '\\u00e9',
  ),
  fc.constantFrom(
    '[]',
    '[^]',
    '[a-z]',
    '[^a]',
    '[\\w.-]',
    '[^\\s]',
    '[\\ud800-\\udfff]',
    '\\ud83d',
    '\\cJ',
    '\\0',
    '\\x41',
    ' ',
  ),
  fc.constantFrom('\\b', '\\B', '^', '$', '👍', '[👍]', '{', ']', '(?<!a)', '(?<=b)', '(?<=[ab]-)'),
);
const quantifier = fc.constantFrom('', '', '', '*', '+', '?', '{2}', '{0,2}', '{1,}', '*?', '{0}', '{,2}');
const assertions = /^(?:\\b|\\B|\^|\$|\{|\(\?<)/;

const { pattern } = fc.letrec<{ pattern: string; sequence: string; term: string }>((tie) => ({
  term: fc
    .tuple(
      fc.oneof(
        { maxDepth: 2 },
        atom,
        atom,
        tie('pattern').map((one) => `(?:${one})`),
        tie('pattern').map((one) => `(${one})`),
      ),
      quantifier,
    )
    .map(([one, times]) => (assertions.test(one) || one === '' ? one : one + times)),
  sequence: fc.array(tie('term'), { maxLength: 4 }).map((terms) => terms.join('')),
  pattern: fc.array(tie('sequence'), { minLength: 1, maxLength: 3 }).map((sequences) => sequences.join('|')),
}));

const native = createContext({ source: '', text: '' });
const nativeScript = new Script('new RegExp(source).test(text)');

/** The result of Node's own engine; undefined for a random pattern that backtracks for longer than 100 ms. */
function nativeTest(source: string, text: string): boolean | undefined {
  Object.assign(native, { source, text });
  try {
    return nativeScript.runInContext(native, { timeout: 100 });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_SCRIPT_EXECUTION_TIMEOUT') return undefined;
    throw error;
  }
}

describe('a pattern', () => {
  it("means what JavaScript's RegExp makes of it", () => {
    let judged = 0;
    fc.assert(
      fc.property(pattern, fc.array(text, { minLength: 1, maxLength: 12 }), (source, texts) => {
        const compiled = compilePattern(source, meter);
        for (const one of texts) {
          const expected = nativeTest(source, one);
          if (expected === undefined) continue;
          meter.begin(one.length);
          expect(compiled.test(one), `${source} on ${JSON.stringify(one)}`).toBe(expected);
          judged++;
        }
      }),
      { numRuns: generatedCases(300) },
    );
    expect(judged).toBeGreaterThan(generatedCases(300));
  });

  it.each([
    '^(?!\\s*$).+',
    '^(?=.*[a-z])(?=.*\\d).{3,}$',
    '^(?!a|b$)[ab]+$',
    '^(?=a)',
    '^(?![\\s\\S]*--)(?:[ab-]{0,3})$',
    '^(?:[a-z]{2}){1,1100}$',
    '^[^/]{1,4096}$',
    '^(a|b){1200,}$',
  ])('%s, with lookaheads at its start or long repetitions, means the same too', (source) => {
    const native = new RegExp(source);
    const compiled = compilePattern(source, meter);
    const judge = (one: string) => {
      meter.begin(one.length);
      expect(compiled.test(one), one).toBe(native.test(one));
    };
    for (const one of ['', ' ', 'a1b', 'b', 'ab'.repeat(650), 'x'.repeat(3_500)]) judge(one);
    fc.assert(fc.property(text, judge), { numRuns: generatedCases(60) });
  });

  it.each([
    ['^\\p{L}+$'],
    ["^[\\p{L}\\p{N}\\-\\_\\' .]{1,40}$", "^[\\p{L}\\p{N}\\-_' .]{1,40}$"],
    ['^[\\p{L}-.]+$', '^[\\p{L}.-]+$'],
    ['^[.-\\p{L}]+$', '^[.\\p{L}-]+$'],
    ['^[+\\--\\p{L}{}[-]+$', '^[+\\-\\p{L}{}[-]+$'],
    ['^\\p{L}{2,}]$|^{\\p{Nd}}$', '^\\p{L}{2,}\\]$|^\\{\\p{Nd}\\}$'],
    ['^\\p{Lu}\\p{Ll}+\\é\\😀?\\q?$', '^\\p{Lu}\\p{Ll}+é😀?q?$'],
    ['^[\\p{L}\\-\\]]{1,3}\\-$', '^[\\p{L}\\-\\]]{1,3}-$'],
    ['^\\P{Lu}*\\p{Script=Greek}?$'],
    ['(?:\\p{L}+ )*\\p{Lu}$'],
    ['^(?!.*\\P{L})[^\\p{Lu}\\d]'],
    ['^[^\\p{Lu}\\d]$|\\W{3}$'],
    ['^(?=.*\\p{Nd}).{2}$'],
    ['^(?:[^a]{2}|\\u{1f44d}\\S)$'],
    ['^(?:\\ud83d|[^\\P{L}])+$'],
    ['^\\p{Letter}+( \\p{gc=Uppercase_Letter}+)*$'],
    ['^(?:[\\p{Script=Grek}\\p{Cs}]|\\p{scx=Latn}\\P{Alphabetic})+$'],
  ])('%s, with properties of Unicode, means what it does with the flag u', (source, strict = source) => {
    const native = new RegExp(strict, 'u');
    const compiled = compilePattern(source, meter);
    const judge = (one: string) => {
      meter.begin(one.length);
      expect(compiled.test(one), one).toBe(native.test(one));
    };
    for (const one of [
      'José',
      "O'Neil-1_",
      'ΣΕΛ',
      'p{L}',
      '😀😀',
      '👍a',
      '٣x',
      'ab C',
      '\ud83d',
      'Joé',
      'éé]',
      '{7}',
      'a--',
      '.-é{',
    ])
      judge(one);
    fc.assert(fc.property(fc.oneof(text, fc.string({ unit: 'binary' })), judge), {
      numRuns: generatedCases(60),
    });
  });

  it.each([
    ['a p behind an escaped backslash', '^\\\\p{2}$', '\\pp'],
    ['a property of another language', '^\\p{javaLowerCase}$', 'p{javaLowerCase}'],
    ['such a property in a pattern for RE2', '^(?:\\p{Alnum}+)+$', 'p{Alnum}'],
  ])('%s is read as a text', (_, source, matching) => {
    const compiled = compilePattern(source, meter);
    meter.begin(30);
    expect([compiled.test(matching), compiled.test('é')]).toEqual([true, false]);
  });

  it.each([
    ['(a)\\1', 'backreference'],
    ['a(?!b)c', 'lookahead'],
    ['^(?:(?=a)b)$', 'lookahead'],
    ['(?:(?:a{100}){100}){100}', 'too long'],
    ['a(', 'Unterminated group'],
    ['(?i:a)', 'modifiers'],
  ])('%s is refused, because of its %s', (source, why) => {
    expect(() => compilePattern(source, meter)).toThrow(why);
  });

  it('is refused if so many properties would take seconds to compile', () => {
    expect(() => compilePattern(`(?:${'\\p{L}'.repeat(2_000)})*$`, meter)).toThrow('too long');
  });
});

/** Patterns on which RegExp backtracks, with a text that is repeated and what stands behind it. */
const SLOW: readonly (readonly [pattern: string, repeated: string, end: string])[] = [
  ['^(a+)+$', 'a', '!'],
  ['^(a|a)*$', 'a', '!'],
  [
    '^([a-zA-Z0-9])(([-.]|[_]+)?([a-zA-Z0-9]+))*(@){1}[a-z0-9]+[.]{1}(([a-z]{2,3})|([a-z]{2,3}[.]{1}[a-z]{2,3}))$',
    'a',
    '',
  ],
  ['(x+x+)+y', 'x', ''],
  ['(.*a){12}$', 'a', '!'],
  ['\\s+$', ' ', 'x'],
  ['[a-z]+[0-9]$', 'a', ''],
  ['^.*x.*x.*x$', 'x', '!'],
  ['^(?!.*(?:a+)+!)(?:a+)+b$', 'a', ''],
  ['^(\\w+\\s?)*$', 'word ', '!'],
  ['^a*a{200}$', 'a', '!'],
  ['^[\\s\\S]{1,4096}$', 'a', ''],
  ['(?<=a+)(?:a+)+b', 'a', ''],
  ['^(\\p{L}+\\s?)*$', 'é', '!'],
  ['^\\p{L}*$', 'é', '!'],
];

it.each(SLOW)('%s takes no time that grows faster than the text', (source, repeated, end) => {
  const compiled = compilePattern(source, meter);
  expectLinearTime((size) => {
    const one = repeated.repeat(size) + end;
    return () => {
      meter.begin(one.length);
      compiled.test(one);
    };
  }, 4_000);
});

describe('a pattern whose size shows no bound of its time', () => {
  const source = '^(?:a|b)*a(?:a|b){20}$';

  it.each([
    ['a text too long for it', 'ab'.repeat(5_000_000), [0]],
    ['texts that have taken a second already', 'ab', [0, 1_500, 1_500, 1_500]],
  ])('is not tried on %s', (_, one, clock) => {
    const times = [...clock];
    const slow = new Meter(() => times.shift() ?? 0);
    const compiled = compilePattern(source, slow);
    slow.begin(100);
    expect(() => {
      compiled.test(one);
      compiled.test(one);
    }).toThrow(TooComplex);
  });
});

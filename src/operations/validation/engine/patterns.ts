import { type AST, RegExpParser } from '@eslint-community/regexpp';
import { RE2JS } from 're2js';
import type { Meter } from './meter.ts';
import { sequenceToRe2, toCodePoints, toRe2, UnsupportedByRe2 } from './re2-syntax.ts';

/** A pattern that cannot be evaluated in linear time. */
export class PatternError extends Error {
  readonly pattern: string;

  constructor(pattern: string, reason: string) {
    super(`the pattern ${pattern} cannot be used: ${reason}`);
    this.pattern = pattern;
  }
}

/**
 * Compiles a JSON Schema pattern so that it runs in linear time: with Node's engine if the pattern cannot backtrack, otherwise with RE2.
 * Throws PatternError if neither is possible. Most patterns are not written for the flag `u` of ECMA-262, so it applies only where it is
 * needed.
 *
 * @returns what Ajv uses of a pattern; `toString` identifies it
 */
export function compilePattern(source: string, meter: Meter): { test: Test; toString(): string } {
  try {
    const test = tester(parseUnicode(source) ?? parse(source, false), meter);
    return { test, toString: () => source };
  } catch (error) {
    throw new PatternError(source, error instanceof Error ? error.message : String(error));
  }
}

type Test = (text: string) => boolean;

/**
 * Properties such as `\p{L}`, and `\u{e9}`, are a letter and a text in braces without the flag `u`. Undefined for a pattern without them, and
 * for properties of other languages: such a pattern keeps the meaning of Annex B.
 */
function parseUnicode(source: string) {
  if (!/\\(?:[pP]\{|u\{)/.test(source.replaceAll('\\\\', ''))) return undefined;
  try {
    // RegExp refuses scripts that are newer than Node's version of Unicode, which the parser knows.
    return parse(new RegExp(forUnicode(source), 'u').source, true);
  } catch {
    return undefined;
  }
}

/** A pattern, and whether it has the flag `u`. Without it, parses by the rules of Annex B, like `new RegExp(source)`. */
function parse(source: string, isUnicode: boolean) {
  const { alternatives } = new RegExpParser().parsePattern(source, 0, source.length, { unicode: isUnicode });
  return { source, isUnicode, alternatives };
}

/** Escapes, repetitions, and single characters that may have a meaning. */
const TOKENS = /\\(?:[pP]\{[\w=]+\}|u\{[\da-fA-F]+\}|[\s\S])|\{\d+(?:,\d*)?\}|[[\]{}-]/gu;

const SET = /^\\[pPdDsSwW]/;

/** Rewrites what is an error with the flag `u`: escapes that have no meaning, a dash beside a set, as in `[\w-.]`, and single brackets. */
function forUnicode(source: string): string {
  let setEnd = -1;
  const escaped = source.replaceAll(TOKENS, (token, at: number) => {
    const end = at + token.length;
    if (token === '-') return at === setEnd || SET.test(source.slice(end, end + 2)) ? codeOf(token) : token;
    if (SET.test(token)) setEnd = end;
    return escapeFor(token);
  });
  return withoutSingleBrackets(escaped);
}

function withoutSingleBrackets(source: string): string {
  let isInClass = false;
  return source.replaceAll(TOKENS, (token) => {
    if (token.length > 1 || token === '-') return token;
    const wasInClass = isInClass;
    isInClass = token === '[' || (wasInClass && token !== ']');
    return wasInClass || isInClass ? token : codeOf(token);
  });
}

function escapeFor(token: string): string {
  const escaped = token.slice(1);
  const hasMeaning = !token.startsWith('\\') || /^[bBcdDfknpPrsStuvwWx\d^$\\.*+?()[\]{}|/]/.test(escaped);
  return hasMeaning ? token : codeOf(escaped);
}

function codeOf(character: string): string {
  return `\\u{${character.codePointAt(0)?.toString(16)}}`;
}

function tester(parsed: ReturnType<typeof parse>, meter: Meter): Test {
  const { alternatives, source, isUnicode } = parsed;
  const [only] = alternatives;
  if (only === undefined) throw new UnsupportedByRe2('it is empty');
  if (alternatives.length > 1) return re2(toRe2(alternatives, isUnicode), isUnicode, meter);
  if (cannotBacktrack(only.elements)) return native(source, isUnicode);
  return withLookaheads(only.elements, isUnicode, meter);
}

function native(source: string, isUnicode: boolean): Test {
  const expression = new RegExp(source, isUnicode ? 'u' : '');
  return (text) => expression.test(text);
}

function re2(translated: string, isUnicode: boolean, meter: Meter): Test {
  const compiled = RE2JS.compile(translated, RE2JS.LOOKBEHINDS);
  const size = compiled.programSize();
  return (text) => meter.scan(size, text.length, () => compiled.test(isUnicode ? text : toCodePoints(text)));
}

/**
 * `^(?=a)(?!b)c` matches if `^c` and `^a` match and `^b` does not, so lookaheads at the start of the text are compiled as
 * separate expressions. RE2 does not support any others.
 */
function withLookaheads(elements: readonly AST.Element[], isUnicode: boolean, meter: Meter): Test {
  const lookaheads: AST.LookaheadAssertion[] = [];
  const [start, ...behind] = elements;
  if (start === undefined || !isStart(start))
    return re2(sequenceToRe2(elements, isUnicode), isUnicode, meter);
  for (const element of behind) {
    if (element.type !== 'Assertion' || element.kind !== 'lookahead') break;
    lookaheads.push(element);
  }
  const conditions = lookaheads.map(({ alternatives, negate }) => {
    const test = re2(`\\A(?:${toRe2(alternatives, isUnicode)})`, isUnicode, meter);
    return (text: string) => test(text) !== negate;
  });
  const rest = re2(`\\A${sequenceToRe2(behind.slice(lookaheads.length), isUnicode)}`, isUnicode, meter);
  return (text) => conditions.every((isMet) => isMet(text)) && rest(text);
}

function isStart(element: AST.Element): boolean {
  return element.type === 'Assertion' && element.kind === 'start';
}

/** Maximum length of a fixed sequence for Node's engine, which may try the whole sequence at each position of the text. */
const MAX_FIXED = 32;

/**
 * Whether Node's engine runs the pattern in linear time. The pattern must consist of single characters, and at most one of them
 * repeats a variable number of times. Without `^` at the start, that one must be last, so that no match fails after a long run.
 */
function cannotBacktrack(elements: readonly AST.Element[]): boolean {
  const [first] = elements;
  const isAnchored = first !== undefined && isStart(first);
  const counted = isAnchored ? elements.slice(1) : elements;
  const counts = counted.flatMap((element) => countOf(element) ?? []);
  if (counts.length < counted.length) return false;
  const fixed = counts.reduce((sum, { least }) => sum + least, 0);
  const variable = counts.filter(({ isVariable }) => isVariable).length;
  if (isAnchored && variable === 0) return true;
  if (fixed > MAX_FIXED || variable > 1) return false;
  return isAnchored || variable === 0 || counts.at(-1)?.isVariable === true;
}

/**
 * How often a single character occurs. Undefined unless the element is a single character or the end of the text, which counts as no
 * character.
 */
function countOf(element: AST.Element) {
  if (element.type === 'Assertion' && element.kind === 'end') return { least: 0, isVariable: false };
  const [node, min, max] =
    element.type === 'Quantifier' ? [element.element, element.min, element.max] : [element, 1, 1];
  return SINGLE.has(node.type) ? { least: min, isVariable: min !== max } : undefined;
}

/** The parts of a pattern that match a single character. */
const SINGLE: ReadonlySet<AST.Node['type']> = new Set(['Character', 'CharacterSet', 'CharacterClass']);

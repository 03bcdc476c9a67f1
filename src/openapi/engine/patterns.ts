import { type AST, RegExpParser } from '@eslint-community/regexpp';
import { RE2JS } from 're2js';
import { codeUnitsOf } from './code-units.ts';
import type { Meter } from './meter.ts';
import { Inexpressible, sequenceToRe2, toCodePoints, toRe2 } from './re2-syntax.ts';

/** A pattern that cannot be judged in linear time, and why. */
export class PatternTrouble extends Error {
  readonly pattern: string;

  constructor(pattern: string, why: string) {
    super(`the pattern ${pattern} cannot be used: ${why}`);
    this.pattern = pattern;
  }
}

/** What Ajv needs of a pattern. */
interface Pattern {
  test(text: string): boolean;
  /** Tells patterns apart. */
  toString(): string;
}

/**
 * A pattern of JSON Schema (ECMA-262 without the flag `u`), judged in linear time whatever the text is: by the engine of
 * Node where it cannot backtrack, else by RE2. Throws PatternTrouble where neither can.
 */
export function compilePattern(source: string, meter: Meter): Pattern {
  try {
    return { test: tester(parse(source), source, meter), toString: () => source };
  } catch (error) {
    throw new PatternTrouble(source, error instanceof Error ? error.message : String(error));
  }
}

type Test = (text: string) => boolean;

/** Parsed by the rules of Annex B, as `new RegExp(source)` does. */
function parse(source: string): AST.Pattern {
  return new RegExpParser().parsePattern(source, 0, source.length, { unicode: false });
}

function tester({ alternatives }: AST.Pattern, source: string, meter: Meter): Test {
  const [only] = alternatives;
  if (only === undefined) throw new Inexpressible('it is empty');
  if (alternatives.length > 1) return re2(toRe2(alternatives), meter);
  if (cannotBacktrack(only.elements)) return native(source);
  return withLookaheads(only.elements, meter);
}

function native(source: string): Test {
  const expression = new RegExp(source);
  return (text) => expression.test(text);
}

function re2(translated: string, meter: Meter): Test {
  const compiled = RE2JS.compile(translated, RE2JS.LOOKBEHINDS);
  const size = compiled.programSize();
  return (text) => meter.scan(size, text.length, () => compiled.test(toCodePoints(text)));
}

/**
 * `^(?=a)(?!b)c` matches where `^c` and `^a` match and `^b` does not, so lookaheads at the start of a text are expressions
 * of their own. RE2 has no others.
 */
function withLookaheads(elements: readonly AST.Element[], meter: Meter): Test {
  const lookaheads: AST.LookaheadAssertion[] = [];
  const [start, ...behind] = elements;
  if (start === undefined || !isStart(start)) return re2(sequenceToRe2(elements), meter);
  for (const element of behind) {
    if (element.type !== 'Assertion' || element.kind !== 'lookahead') break;
    lookaheads.push(element);
  }
  const conditions = lookaheads.map(({ alternatives, negate }) => {
    const test = re2(`\\A(?:${toRe2(alternatives)})`, meter);
    return (text: string) => test(text) !== negate;
  });
  const rest = re2(`\\A${sequenceToRe2(behind.slice(lookaheads.length))}`, meter);
  return (text) => conditions.every((isMet) => isMet(text)) && rest(text);
}

function isStart(element: AST.Element): boolean {
  return element.type === 'Assertion' && element.kind === 'start';
}

/** Single characters that have to stand in a row: Node's engine can try all of them at each place of a text. */
const MOST_FIXED = 32;

/**
 * Whether Node's engine needs linear time: single characters only, of which at most one repeats a variable number of times,
 * and nothing behind that one where the pattern does not begin with `^`: it cannot fail after a long run.
 */
function cannotBacktrack(elements: readonly AST.Element[]): boolean {
  const [first] = elements;
  const isAnchored = first !== undefined && isStart(first);
  const counts: Count[] = [];
  for (const element of isAnchored ? elements.slice(1) : elements) {
    const count = countOf(element);
    if (count === undefined) return false;
    counts.push(count);
  }
  const fixed = counts.reduce((sum, { least }) => sum + least, 0);
  const variable = counts.filter(({ isVariable }) => isVariable).length;
  if (isAnchored && variable === 0) return true;
  if (fixed > MOST_FIXED || variable > 1) return false;
  return isAnchored || variable === 0 || counts.at(-1)?.isVariable === true;
}

/** How often a single character stands somewhere. */
interface Count {
  readonly least: number;
  readonly isVariable: boolean;
}

/** Undefined for what is neither a single character nor the end of the text, which takes no character. */
function countOf(element: AST.Element): Count | undefined {
  if (element.type === 'Assertion' && element.kind === 'end') return { least: 0, isVariable: false };
  const [node, min, max] =
    element.type === 'Quantifier' ? [element.element, element.min, element.max] : [element, 1, 1];
  return codeUnitsOf(node) === undefined ? undefined : { least: min, isVariable: min !== max };
}

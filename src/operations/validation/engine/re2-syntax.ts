/**
 * Translates ECMAScript patterns to RE2 syntax with the same meaning. Patterns without the flag `u` match UTF-16 code units, but RE2
 * matches code points, so surrogates are mapped to private-use code points (`toCodePoints`).
 */
import type { AST } from '@eslint-community/regexpp';
import { type CodeUnits, codeUnitsOf } from './code-units.ts';

/** Thrown for a pattern that RE2 does not support. The message names the part. */
export class UnsupportedByRe2 extends Error {}

const FIRST_SURROGATE = 0xd800;
const LAST_SURROGATE = 0xdfff;
/** Maps surrogates to the end of the last private-use plane. */
const SURROGATE_SHIFT = 0x100000;

/** Largest repetition count that RE2 accepts in one quantifier. */
const MAX_REPETITIONS = 1_000;

/** Maximum size of a pattern with its repetitions expanded. A larger one would take seconds to compile. */
const MAX_PARTS = 20_000;

/** A set with so many ranges takes as long to compile as one more part: `\p{L}` has 684. */
const RANGES_PER_PART = 64;

/** Converts a text for the translated patterns: one code point for each code unit. */
export function toCodePoints(text: string): string {
  return text.replace(/[\ud800-\udfff]/g, (unit) =>
    String.fromCodePoint(unit.charCodeAt(0) + SURROGATE_SHIFT),
  );
}

/** Translates alternatives. Throws UnsupportedByRe2. */
export function toRe2(alternatives: readonly AST.Alternative[], isUnicode: boolean): string {
  const parts = { left: MAX_PARTS, isUnicode };
  return alternatives.map((one) => sequence(one.elements, 1, parts)).join('|');
}

/** Translates part of an alternative. Throws UnsupportedByRe2. */
export function sequenceToRe2(elements: readonly AST.Element[], isUnicode: boolean): string {
  return sequence(elements, 1, { left: MAX_PARTS, isUnicode });
}

interface Parts {
  left: number;
  readonly isUnicode: boolean;
}

/** @param times how often the enclosing quantifiers repeat the sequence */
function sequence(elements: readonly AST.Element[], times: number, parts: Parts): string {
  return elements.map((element) => part(element, times, parts)).join('');
}

function part(element: AST.Element, times: number, parts: Parts): string {
  const units = codeUnitsOf(element, parts.isUnicode);
  parts.left -= times + (units?.length ?? 0) / RANGES_PER_PART;
  if (parts.left < 0) throw new UnsupportedByRe2('it is too long with its repetitions expanded');
  if (units !== undefined) return set(units, parts.isUnicode);
  switch (element.type) {
    case 'Group':
      if (element.modifiers !== null)
        throw new UnsupportedByRe2(`the modifiers of ${element.raw} are not supported`);
      return group(element.alternatives, times, parts);
    case 'CapturingGroup':
      return group(element.alternatives, times, parts);
    case 'Quantifier':
      return quantifier(element, times, parts);
    case 'Assertion':
      return assertion(element, times, parts);
    case 'Backreference':
      throw new UnsupportedByRe2(`the backreference ${element.raw} cannot be evaluated in linear time`);
    default:
      throw new UnsupportedByRe2(`${element.raw} is not supported`);
  }
}

function group(alternatives: readonly AST.Alternative[], times: number, parts: Parts): string {
  return `(?:${alternatives.map((one) => sequence(one.elements, times, parts)).join('|')})`;
}

function set(units: CodeUnits, isUnicode: boolean): string {
  if (units.length === 0) return '[^\\x{0}-\\x{10FFFF}]';
  const pieces = units.flatMap(([first, last]) => (isUnicode ? range(first, last) : split(first, last)));
  return `[${pieces.join('')}]`;
}

/** Splits a range into the parts before, within and after the surrogates. */
function split(first: number, last: number): readonly string[] {
  const pieces: [number, number, number][] = [
    [first, Math.min(last, FIRST_SURROGATE - 1), 0],
    [Math.max(first, FIRST_SURROGATE), Math.min(last, LAST_SURROGATE), SURROGATE_SHIFT],
    [Math.max(first, LAST_SURROGATE + 1), last, 0],
  ];
  return pieces
    .filter(([from, to]) => from <= to)
    .map(([from, to, shift]) => range(from + shift, to + shift));
}

function range(first: number, last: number): string {
  return `\\x{${first.toString(16)}}-\\x{${last.toString(16)}}`;
}

function assertion(element: AST.Assertion, times: number, parts: Parts): string {
  switch (element.kind) {
    case 'start':
      return '\\A';
    case 'end':
      return '\\z';
    case 'word':
      return element.negate ? '\\B' : '\\b';
    case 'lookbehind':
      return `(?<${element.negate ? '!' : '='}${group(element.alternatives, times, parts)})`;
    case 'lookahead':
      throw new UnsupportedByRe2(`the lookahead ${element.raw} cannot be evaluated in linear time`);
  }
}

/** Splits `x{1,2500}` into several quantifiers: RE2 rejects counts above 1,000, and multiplies nested ones. */
function quantifier({ min, max, element }: AST.Quantifier, times: number, parts: Parts): string {
  const isOpen = max === Number.POSITIVE_INFINITY;
  const repeated = `(?:${part(element, times * Math.max(isOpen ? min : max, 1), parts)})`;
  const most = Math.max(1, Math.floor(MAX_REPETITIONS / repetitionsIn(element)));
  const pieces: string[] = [];
  for (let left = min; left > 0; left -= most) pieces.push(`${repeated}{${Math.min(left, most)}}`);
  if (isOpen) pieces.push(`${repeated}*`);
  else
    for (let left = max - min; left > 0; left -= most) pieces.push(`${repeated}{0,${Math.min(left, most)}}`);
  return `(?:${pieces.join('')})`;
}

/** The product of the nested repetition counts, with each count capped by the split. */
function repetitionsIn(node: AST.Element): number {
  if (node.type === 'Quantifier') {
    const { min, max, element } = node;
    const own = max === Number.POSITIVE_INFINITY ? min : max;
    return Math.min(MAX_REPETITIONS, Math.max(1, own) * repetitionsIn(element));
  }
  const inner = 'alternatives' in node ? node.alternatives.flatMap(({ elements }) => elements) : [];
  return Math.max(1, ...inner.map(repetitionsIn));
}

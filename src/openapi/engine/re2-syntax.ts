/**
 * Patterns of ECMAScript in the syntax of RE2, with the same meaning. JSON Schema's patterns match UTF-16 code units,
 * RE2 matches code points: halves of surrogate pairs are written as code points that no text has (`toCodePoints`).
 */
import type { AST } from '@eslint-community/regexpp';
import { type CodeUnits, codeUnitsOf } from './code-units.ts';

/** Thrown for what RE2 cannot express: it says which part of a pattern that is. */
export class Inexpressible extends Error {}

const FIRST_SURROGATE = 0xd800;
const LAST_SURROGATE = 0xdfff;
/** Puts surrogates at the end of the last private use plane. */
const SURROGATE_SHIFT = 0x100000;

/** Repetitions that RE2 takes in one quantifier. */
const MOST_REPETITIONS = 1_000;

/** Parts that a pattern may have with its repetitions written out: more would take seconds to compile. */
const MOST_PARTS = 20_000;

/** A text as the translated patterns read it: one code point for each of its code units. */
export function toCodePoints(text: string): string {
  return text.replace(/[\ud800-\udfff]/g, (unit) =>
    String.fromCodePoint(unit.charCodeAt(0) + SURROGATE_SHIFT),
  );
}

/** Throws Inexpressible. */
export function toRe2(alternatives: readonly AST.Alternative[]): string {
  const parts = { left: MOST_PARTS };
  return alternatives.map((one) => sequence(one.elements, 1, parts)).join('|');
}

/** One alternative without its leading elements. Throws Inexpressible. */
export function sequenceToRe2(elements: readonly AST.Element[]): string {
  return sequence(elements, 1, { left: MOST_PARTS });
}

interface Parts {
  left: number;
}

/** @param times how often all of it is repeated by what is around it */
function sequence(elements: readonly AST.Element[], times: number, parts: Parts): string {
  return elements.map((element) => part(element, times, parts)).join('');
}

function part(element: AST.Element, times: number, parts: Parts): string {
  parts.left -= times;
  if (parts.left < 0) throw new Inexpressible('it is too long with its repetitions written out');
  const units = codeUnitsOf(element);
  if (units !== undefined) return set(units);
  switch (element.type) {
    case 'Group':
      if (element.modifiers !== null)
        throw new Inexpressible(`the modifiers of ${element.raw} are not supported`);
      return group(element.alternatives, times, parts);
    case 'CapturingGroup':
      return group(element.alternatives, times, parts);
    case 'Quantifier':
      return quantifier(element, times, parts);
    case 'Assertion':
      return assertion(element, times, parts);
    case 'Backreference':
      throw new Inexpressible(`the backreference ${element.raw} cannot be judged in linear time`);
    default:
      throw new Inexpressible(`${element.raw} is not supported`);
  }
}

function group(alternatives: readonly AST.Alternative[], times: number, parts: Parts): string {
  return `(?:${alternatives.map((one) => sequence(one.elements, times, parts)).join('|')})`;
}

function set(units: CodeUnits): string {
  if (units.length === 0) return '[^\\x{0}-\\x{10FFFF}]';
  return `[${units.flatMap(([first, last]) => split(first, last)).join('')}]`;
}

/** A range as ranges that lie within, before or after the surrogates. */
function split(first: number, last: number): readonly string[] {
  const pieces: [number, number, number][] = [
    [first, Math.min(last, FIRST_SURROGATE - 1), 0],
    [Math.max(first, FIRST_SURROGATE), Math.min(last, LAST_SURROGATE), SURROGATE_SHIFT],
    [Math.max(first, LAST_SURROGATE + 1), last, 0],
  ];
  return pieces
    .filter(([from, to]) => from <= to)
    .map(([from, to, shift]) => `\\x{${(from + shift).toString(16)}}-\\x{${(to + shift).toString(16)}}`);
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
      throw new Inexpressible(`the lookahead ${element.raw} cannot be judged in linear time`);
  }
}

/** `x{1,2500}` in pieces: RE2 refuses more than 1,000, and multiplies quantifiers that stand inside of one another. */
function quantifier({ min, max, element }: AST.Quantifier, times: number, parts: Parts): string {
  const isOpen = max === Number.POSITIVE_INFINITY;
  const repeated = `(?:${part(element, times * Math.max(isOpen ? min : max, 1), parts)})`;
  const most = Math.max(1, Math.floor(MOST_REPETITIONS / repetitionsIn(element)));
  const pieces: string[] = [];
  for (let left = min; left > 0; left -= most) pieces.push(`${repeated}{${Math.min(left, most)}}`);
  if (isOpen) pieces.push(`${repeated}*`);
  else
    for (let left = max - min; left > 0; left -= most) pieces.push(`${repeated}{0,${Math.min(left, most)}}`);
  return `(?:${pieces.join('')})`;
}

/** By how much the quantifiers inside of a part multiply; none counts for more than one piece of it. */
function repetitionsIn(node: AST.Element): number {
  if (node.type === 'Quantifier') {
    const { min, max, element } = node;
    const own = max === Number.POSITIVE_INFINITY ? min : max;
    return Math.min(MOST_REPETITIONS, Math.max(1, own) * repetitionsIn(element));
  }
  const inner = 'alternatives' in node ? node.alternatives.flatMap(({ elements }) => elements) : [];
  return Math.max(1, ...inner.map(repetitionsIn));
}

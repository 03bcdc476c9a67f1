/** Sets of UTF-16 code units. Without the flag `u`, one character of a pattern matches one code unit; with it, one code point. */
import type { AST } from '@eslint-community/regexpp';

/** Sorted ranges of code units, inclusive at both ends. They neither overlap nor touch. */
export type CodeUnits = readonly (readonly [first: number, last: number])[];

const LAST_UNIT = 0xffff;
const LAST_POINT = 0x10ffff;

const DIGITS: CodeUnits = [[0x30, 0x39]];
const WORD: CodeUnits = union([
  [0x30, 0x39],
  [0x41, 0x5a],
  [0x5f, 0x5f],
  [0x61, 0x7a],
]);
const LINE_ENDS: CodeUnits = union([
  [0x0a, 0x0a],
  [0x0d, 0x0d],
  [0x2028, 0x2029],
]);
/** WhiteSpace and LineTerminator of ECMAScript (ECMA-262, sections 12.2 and 12.3). */
const SPACE: CodeUnits = union([
  [0x09, 0x0d],
  [0x20, 0x20],
  [0xa0, 0xa0],
  [0x1680, 0x1680],
  [0x2000, 0x200a],
  [0x2028, 0x2029],
  [0x202f, 0x202f],
  [0x205f, 0x205f],
  [0x3000, 0x3000],
  [0xfeff, 0xfeff],
]);

/** The set of code units, or of code points, that a part of a pattern matches. Undefined if the part is not a single character. */
export function codeUnitsOf(node: AST.Node, isUnicode: boolean): CodeUnits | undefined {
  const last = isUnicode ? LAST_POINT : LAST_UNIT;
  switch (node.type) {
    case 'Character':
      return [[node.value, node.value]];
    case 'CharacterClassRange':
      return [[node.min.value, node.max.value]];
    case 'CharacterSet':
      return setOf(node, last);
    case 'CharacterClass': {
      const elements = node.elements.map((element) => codeUnitsOf(element, isUnicode));
      if (elements.includes(undefined)) return undefined;
      const all = union(elements.flatMap((units) => units ?? []));
      return node.negate ? complement(all, last) : all;
    }
    default:
      return undefined;
  }
}

function setOf(node: AST.CharacterSet, last: number): CodeUnits {
  switch (node.kind) {
    case 'any':
      return complement(LINE_ENDS, last);
    case 'digit':
      return node.negate ? complement(DIGITS, last) : DIGITS;
    case 'space':
      return node.negate ? complement(SPACE, last) : SPACE;
    case 'word':
      return node.negate ? complement(WORD, last) : WORD;
    case 'property':
      return pointsOf(node.raw);
  }
}

/** Of properties such as `\p{L}`, by how they are written: finding one takes some 50 ms. */
const byProperty = new Map<string, CodeUnits>();

/** RE2 has other names, and another version of Unicode. */
function pointsOf(property: string): CodeUnits {
  const known = byProperty.get(property);
  if (known !== undefined) return known;
  const expression = new RegExp(property, 'u');
  const found: [number, number][] = [];
  for (let point = 0; point <= LAST_POINT; point++) {
    if (!expression.test(String.fromCodePoint(point))) continue;
    const before = found.at(-1);
    if (before?.[1] === point - 1) before[1] = point;
    else found.push([point, point]);
  }
  byProperty.set(property, found);
  return found;
}

function union(ranges: CodeUnits): CodeUnits {
  const merged: [number, number][] = [];
  for (const [first, last] of ranges.toSorted(([one], [other]) => one - other)) {
    const before = merged.at(-1);
    if (before === undefined || first > before[1] + 1) merged.push([first, last]);
    else before[1] = Math.max(before[1], last);
  }
  return merged;
}

function complement(ranges: CodeUnits, end: number): CodeUnits {
  const others: [number, number][] = [];
  let next = 0;
  for (const [first, last] of ranges) {
    if (first > next) others.push([next, first - 1]);
    next = last + 1;
  }
  if (next <= end) others.push([next, end]);
  return others;
}

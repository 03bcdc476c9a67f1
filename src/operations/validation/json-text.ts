const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COLON = 0x3a;

/**
 * Arrays and objects within each other. Jackson, Java's most common parser, has the same limit. Ajv calls itself at each level, and a
 * stack that overflows takes hundreds of times as long as a request.
 */
const MAX_DEPTH = 1_000;

/**
 * Parses a JSON text in UTF-8 (RFC 8259). An object with duplicate names is a problem, because parsers differ in which
 * value they use (section 4), so the upstream could use one that was not validated.
 */
export function readJson(bytes: Buffer): { readonly value: unknown } | { readonly problem: string } {
  let text: string;
  let value: unknown;
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
    value = JSON.parse(text);
  } catch {
    return { problem: 'is not valid JSON' };
  }
  const properties = countProperties(value);
  if (properties === undefined) return { problem: 'is too deeply nested or too complex to be validated' };
  return countNames(text) === properties ? { value } : { problem: 'has an object with the same name twice' };
}

/** Counts the names of object members in a valid JSON text: the strings followed by a colon. */
function countNames(text: string): number {
  let names = 0;
  let start = text.indexOf('"');
  while (start !== -1) {
    let end = start + 1;
    while (text.charCodeAt(end) !== QUOTE) end += text.charCodeAt(end) === BACKSLASH ? 2 : 1;
    end++;
    while (/\s/.test(text.charAt(end))) end++;
    if (text.charCodeAt(end) === COLON) names++;
    start = text.indexOf('"', end);
  }
  return names;
}

/** Counts the properties of all objects in a value, level by level. Undefined if it has more than MAX_DEPTH levels. */
function countProperties(value: unknown): number | undefined {
  let properties = 0;
  let level = [value].filter(isNested);
  for (let depth = 0; level.length > 0; depth++) {
    if (depth === MAX_DEPTH) return undefined;
    const next: object[] = [];
    for (const one of level) properties += readChildren(one, next);
    level = next;
  }
  return properties;
}

/** Adds the arrays and objects in one to `nested`. @returns the number of its properties: 0 for an array */
function readChildren(one: object, nested: object[]): number {
  const children = Object.values(one);
  for (const child of children) if (isNested(child)) nested.push(child);
  return Array.isArray(one) ? 0 : children.length;
}

function isNested(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

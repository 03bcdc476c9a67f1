const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COLON = 0x3a;

/**
 * Counts the names of object members in a valid JSON text: the strings followed by a colon. They are more than `countProperties` finds in its
 * value if an object has the same name twice.
 */
export function countNames(text: string): number {
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

/** Counts the properties of all objects in a value, level by level. Undefined if it has more levels than this. */
export function countProperties(value: unknown, mostLevels: number): number | undefined {
  let properties = 0;
  let level = [value].filter(isNested);
  for (let depth = 0; level.length > 0; depth++) {
    if (depth === mostLevels) return undefined;
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

/** The parser of YAML allows as many levels of mappings and lists, whatever the last has. */
const MAX_LEVELS = 98;

/** Where strings begin and end, and what may be the colon of a key. */
const MARKS = /\\.|[":]/g;

/**
 * The mapping that a text has as JSON, which is parsed in a tenth of the time of YAML. Undefined for other texts, and where YAML has
 * another value or a problem: where a key is written twice, a number is too large, or the levels are too many.
 */
export function readMappingAsJson(text: string): object | undefined {
  if (!text.trimStart().startsWith('{')) return undefined;
  let value: object;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  return keysIn(value, MAX_LEVELS) === keysWritten(text) ? value : undefined;
}

/** The number of keys in a value. NaN if it has too many levels, or a number that is too large. */
function keysIn(value: unknown, levels: number): number {
  if (typeof value !== 'object' || value === null) return value === Infinity || value === -Infinity ? NaN : 0;
  if (levels === 0) return NaN;
  const parts: readonly unknown[] = Object.values(value);
  let keys = Array.isArray(value) ? 0 : parts.length;
  for (const part of parts) keys += keysIn(part, levels - 1);
  return keys;
}

/** The number of keys in a text that is JSON: each has a colon outside of strings. */
function keysWritten(text: string): number {
  let keys = 0;
  let isInString = false;
  for (const [mark] of text.matchAll(MARKS)) {
    if (mark === '"') isInString = !isInString;
    else if (mark === ':' && !isInString) keys++;
  }
  return keys;
}

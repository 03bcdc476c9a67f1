/** The value of a JSON text, or a problem. */
type Read = { readonly value: unknown } | { readonly problem: string };

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COLON = 0x3a;

/**
 * Parses a JSON text in UTF-8 (RFC 8259). An object with duplicate names is a problem, because parsers differ in which
 * value they use (section 4), so the upstream could use one that was not validated.
 */
export function readJson(bytes: Buffer): Read {
  let text: string;
  let value: unknown;
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
    value = JSON.parse(text);
  } catch {
    return { problem: 'is not valid JSON' };
  }
  return countNames(text) === countProperties(value)
    ? { value }
    : { problem: 'has an object with the same name twice' };
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

/** Counts the properties of all objects in a value. Not recursive, because a deep value would overflow the stack. */
function countProperties(value: unknown): number {
  let properties = 0;
  const waiting: unknown[] = [value];
  while (waiting.length > 0) {
    const one = waiting.pop();
    if (typeof one !== 'object' || one === null) continue;
    const children = Object.values(one);
    if (!Array.isArray(one)) properties += children.length;
    for (const child of children) if (typeof child === 'object') waiting.push(child);
  }
  return properties;
}

import type { JsonPointer } from '../../domain/settlement/json-pointer.ts';

/** A member whose name stands within so many bytes, and whose value has not more, is read from the beginning. */
const EARLY = 2_048;
/** Shorter texts are read from the end as quickly. */
const LONG = 8_192;
const NEW_LINE = 0x0a;
const OPEN_OBJECT = 0x7b;

/** Matches an unterminated string to the end of the text, so that no quotation mark inside it starts another match. */
const TOKENS = /"(?:[^"\\]|\\.)*"?|[[\]{},]/gs;

/**
 * The beginning of a long JSON text as a document of its own: up to the outermost member of the pointer, and closed behind it. What follows
 * is not looked at, except natively for a second member of the name.
 *
 * @returns undefined if the member stands elsewhere, its name occurs twice, or there are several lines of JSON
 */
export function earlyMember(text: Buffer, { outermost }: JsonPointer): string | undefined {
  if (text.length < LONG || outermost === undefined) return undefined;
  const at = text.subarray(0, EARLY).indexOf(outermost);
  if (at === -1) return undefined;
  // Forwards, and without its first quotation mark, a name is found five times faster than otherwise.
  if (text.subarray(at + outermost.length).includes(outermost.subarray(1)) || areLines(text))
    return undefined;
  const head = text.toString('utf8', 0, at);
  const member = text.toString('utf8', at, at + EARLY);
  const end = endOfValue(member, outermost.length);
  // Parsed with 0 as its value, the text is valid only if an outermost member has the name.
  return end !== undefined && isJson(`${head}${outermost}:0}`)
    ? `${head}${member.slice(0, end)}}`
    : undefined;
}

/** Whether the second line begins with another object. */
function areLines(text: Buffer): boolean {
  const end = text.indexOf(NEW_LINE);
  return end !== -1 && text[end + 1] === OPEN_OBJECT;
}

/** Where the comma or bracket stands that follows the value of a member. */
function endOfValue(member: string, from: number): number | undefined {
  let depth = 0;
  TOKENS.lastIndex = from;
  for (let token = TOKENS.exec(member); token !== null; token = TOKENS.exec(member)) {
    const [text] = token;
    if (text === '{' || text === '[') depth++;
    else if (depth === 0 && !text.startsWith('"')) return token.index;
    else if (text === '}' || text === ']') depth--;
  }
  return undefined;
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

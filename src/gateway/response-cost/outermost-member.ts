import type { JsonPointer } from '../../domain/settlement/json-pointer.ts';
import { openedBetween } from './brackets.ts';
import { BACKSLASH, CLOSE_OBJECT, COLON, isSpace, OPEN_OBJECT, QUOTE } from './json-bytes.ts';

/** Shorter texts are read from the end as quickly. */
const LONG = 8_192;
/** The end of a text is looked at first, because most costs stand there. A value may have so many bytes as well. */
const NEAR = 2_048;
/** A text that has the name more often is read from its end. */
const MOST_NAMES = 8;

/** Matches an unterminated string to the end of the text, so that no quotation mark inside it starts another match. */
const TOKENS = /"(?:[^"\\]|\\.)*"?|[[\]{},]/gs;

/**
 * The outermost member of a pointer, from a long JSON text, as a document of its own: it has no other member. Of members with one name it
 * is the last one. In JSON, a name between quotation marks is a string, and before a colon it is a key. It is outermost if one bracket is
 * open there, so nothing else has to be read.
 *
 * @returns undefined if reading the text from its end is better: it is short or no object, has the name often, or the value is long
 */
export function outermostMember(text: Buffer, { outermost: name }: JsonPointer): string | undefined {
  if (text.length < LONG || name === undefined || !isObject(text)) return undefined;
  const near = lastOutermost(text, keysIn(text, text.length - NEAR, name));
  const at = near === NOWHERE ? lastOutermost(text, keysIn(text, 0, name)) : near;
  if (at === NOWHERE) return NO_MEMBER;
  return at === undefined ? undefined : documentOf(text, at, name);
}

const NOWHERE = -1;
const NO_MEMBER = '{}';

/**
 * Where keys of this name begin.
 *
 * @returns undefined if there are too many
 */
function keysIn(text: Buffer, from: number, name: Buffer): readonly number[] | undefined {
  const keys: number[] = [];
  // Without its first quotation mark, a name is found five times faster.
  const end = name.subarray(1);
  let at = text.indexOf(end, from);
  for (let count = 0; at !== -1; count++) {
    if (count === MOST_NAMES) return undefined;
    const start = at - 1;
    if (text[start] === QUOTE && text[start - 1] !== BACKSLASH && isBeforeColon(text, at + end.length))
      keys.push(start);
    at = text.indexOf(end, at + end.length);
  }
  return keys;
}

function isObject(text: Buffer): boolean {
  const end = text.lastIndexOf(CLOSE_OBJECT);
  return text[0] === OPEN_OBJECT && end !== -1 && text.toString('latin1', end + 1).trim() === '';
}

function isBeforeColon(text: Buffer, from: number): boolean {
  let at = from;
  while (isSpace(text[at])) at++;
  return text[at] === COLON;
}

function lastOutermost(text: Buffer, keys: readonly number[] | undefined): number | undefined {
  for (const at of keys?.toReversed() ?? []) {
    const depth = depthAt(text, at);
    if (depth === undefined || depth === 1) return depth && at;
  }
  return keys && NOWHERE;
}

/** How many brackets are open at a key, counted on its shorter side. */
function depthAt(text: Buffer, at: number): number | undefined {
  if (2 * at < text.length) return openedBetween(text, 0, at);
  const opened = openedBetween(text, at, text.length);
  return opened && -opened;
}

const NEXT_TEXT = Buffer.from('\n{');

/** @returns undefined if the value is long, or another text follows */
function documentOf(text: Buffer, at: number, name: Buffer): string | undefined {
  if (text.includes(NEXT_TEXT, at)) return undefined;
  const member = text.toString('utf8', at, at + NEAR);
  const end = endOfValue(member, name.length);
  return end === undefined ? undefined : `{${member.slice(0, end)}}`;
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

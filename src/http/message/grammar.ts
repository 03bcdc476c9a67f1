/**
 * The HTTP/1.1 grammar that every reader of this gateway shares (RFC 9110 section 5, RFC 9112). Text is latin1: one
 * character is one octet.
 */

/** Bytes that break the grammar, or that two readers could understand differently. */
export class GrammarError extends Error {
  override readonly name = 'GrammarError';
}

/** 1 for each octet of a token (RFC 9110 section 5.6.2): methods and field names. */
export const TOKEN_OCTETS = octets(
  "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ",
);

/** 1 for each octet of a field value (RFC 9110 section 5.5): visible, obs-text, space and tab. No control octet. */
export const VALUE_OCTETS = new Uint8Array(256).fill(1, 0x20);
VALUE_OCTETS[0x09] = 1;
VALUE_OCTETS[0x7f] = 0;

const UNSAFE_VALUE = /[^\t\x20-\x7e\x80-\xff]/;
const UNSAFE_TARGET = /[^\x21-\x7e\x80-\xff]/;
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;

const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;

/** No client sends as many line ends in front of a request: one or two of them are usual. */
export const MAX_EMPTY_BYTES = 1_024;

/** How many octets of line ends these bytes begin with. In front of a head, a server ignores them (RFC 9112 section 2.2). */
export function emptyLengthOf(bytes: Buffer): number {
  let at = 0;
  while (bytes[at] === CARRIAGE_RETURN || bytes[at] === LINE_FEED) at++;
  return at;
}

/** Whether a Connection field lists more options than `most`, empty ones included. */
export function namesMoreThan(most: number, connection: string | undefined): boolean {
  if (connection === undefined) return false;
  let count = 1;
  for (let at = connection.indexOf(','); at !== -1 && count <= most; at = connection.indexOf(',', at + 1))
    count++;
  return count > most;
}

/** Whether a Connection field lists this option (lower case). */
export function hasConnectionOption(connection: string, option: string): boolean {
  const lower = connection.toLowerCase();
  return lower.includes(option) && lower.split(',').some((listed) => listed.trim() === option);
}

/** Whether text can be the value of a field that we write: it cannot end its line. */
export function isFieldValue(text: string): boolean {
  return !UNSAFE_VALUE.test(text);
}

/** Whether text can be the target of a request line that we write. */
export function isRequestTarget(text: string): boolean {
  return text.length > 0 && !UNSAFE_TARGET.test(text);
}

/** Whether text is a token: a method or a field name. */
export function isToken(text: string): boolean {
  return TOKEN.test(text);
}

function octets(characters: string): Uint8Array {
  const table = new Uint8Array(256);
  for (const character of characters) table[character.charCodeAt(0)] = 1;
  return table;
}

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

const TAB = 0x09;
const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;
const SPACE = 0x20;
const COLON = 0x3a;

/** 15 digits: the largest number of bytes that is exact in JavaScript has 16. */
const LENGTH = /^\d{1,15}$/;

const UNSAFE_VALUE = /[^\t\x20-\x7e\x80-\xff]/;
const UNSAFE_TARGET = /[^\x21-\x7e\x80-\xff]/;
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;

/** The fields of a message, and what they say about its framing. */
export interface FieldSection {
  /** As sent: name, value, name, value. */
  readonly fields: string[];
  /** Undefined where there is no Content-Length. */
  contentLength: number | undefined;
  isChunked: boolean;
  /** Value of Connection; several are joined by commas. */
  connection: string | undefined;
}

/**
 * Reads field lines, each ended by CRLF. Refuses what makes framing ambiguous: a folded line, space before the colon,
 * control octets, a bare CR or LF, Content-Length twice or padded or beside Transfer-Encoding, any coding but `chunked`.
 *
 * @param text the field lines between `from` and `to`, the last one's CRLF included, without the empty line behind them
 * @throws GrammarError
 */
export function readFieldSection(text: string, from: number, to = text.length): FieldSection {
  const section: FieldSection = {
    fields: [],
    contentLength: undefined,
    isChunked: false,
    connection: undefined,
  };
  let at = from;
  while (at < to) {
    const colon = nameEnd(text, at);
    const end = valueEnd(text, colon + 1);
    const name = text.slice(at, colon);
    const value = trimmed(text, colon + 1, end);
    section.fields.push(name, value);
    if (FRAMING_LENGTHS.has(name.length)) {
      noteFraming(section, name.toLowerCase(), value, text.slice(colon + 1, end));
    }
    at = end + 2;
  }
  if (section.isChunked && section.contentLength !== undefined) {
    throw new GrammarError('Content-Length beside Transfer-Encoding');
  }
  return section;
}

/** Lengths of the names that `noteFraming` knows: a field of another length needs no second look. */
const FRAMING_LENGTHS: ReadonlySet<number> = new Set(
  ['content-length', 'transfer-encoding', 'connection'].map((name) => name.length),
);

function noteFraming(section: FieldSection, name: string, value: string, raw: string): void {
  switch (name) {
    case 'content-length':
      if (section.contentLength !== undefined) throw new GrammarError('Content-Length twice');
      section.contentLength = readContentLength(unpadded(raw));
      return;
    case 'transfer-encoding':
      if (section.isChunked || unpadded(raw).toLowerCase() !== 'chunked') {
        throw new GrammarError('a Transfer-Encoding other than chunked');
      }
      section.isChunked = true;
      return;
    case 'connection':
      section.connection = section.connection === undefined ? value : `${section.connection}, ${value}`;
  }
}

/** Where the name ends, which is at a colon. */
function nameEnd(text: string, from: number): number {
  let at = from;
  while (TOKEN_OCTETS[text.charCodeAt(at)] === 1) at++;
  if (at === from || text.charCodeAt(at) !== COLON) throw new GrammarError('a line that is not a field');
  return at;
}

/** Where the value ends, which is at CRLF. */
function valueEnd(text: string, from: number): number {
  let at = from;
  while (VALUE_OCTETS[text.charCodeAt(at)] === 1) at++;
  if (text.charCodeAt(at) !== CARRIAGE_RETURN || text.charCodeAt(at + 1) !== LINE_FEED) {
    throw new GrammarError('a control octet in a field');
  }
  return at;
}

function trimmed(text: string, from: number, to: number): string {
  let start = from;
  let end = to;
  while (start < end && isBlank(text.charCodeAt(start))) start++;
  while (end > start && isBlank(text.charCodeAt(end - 1))) end--;
  return text.slice(start, end);
}

function isBlank(code: number): boolean {
  return code === SPACE || code === TAB;
}

/** The value behind at most one space: parsers disagree about what other padding means to a field that frames. */
function unpadded(raw: string): string {
  return raw.charCodeAt(0) === SPACE ? raw.slice(1) : raw;
}

function readContentLength(digits: string): number {
  if (!LENGTH.test(digits)) throw new GrammarError('a Content-Length that is not a plain number');
  return Number(digits);
}

/** Whether a Connection field lists this option (lower case). */
export function hasConnectionOption(connection: string, option: string): boolean {
  const lower = connection.toLowerCase();
  if (lower === option) return true;
  return lower.split(',').some((listed) => listed.trim() === option);
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

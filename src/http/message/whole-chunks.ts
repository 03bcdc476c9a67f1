import { TOKEN_OCTETS, VALUE_OCTETS } from './grammar.ts';

/** Chunks with a longer line are left to their reader. */
const MAX_LINE_LENGTH = 4_096;

/** Larger numbers are not exact, and no body is as long. */
const MAX_SIZE = 2 ** 52;

/** Shorter pieces are moved octet by octet, which costs less than a call. */
const FEW_OCTETS = 32;

const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;
const QUOTE = 0x22;
const SEMICOLON = 0x3b;
const EQUALS = 0x3d;
const BACKSLASH = 0x5c;

const NO_DIGIT = 16;

/** The value of each octet that is a hexadecimal digit. */
const DIGITS = new Uint8Array(256).fill(NO_DIGIT);
for (const [value, digit] of [...'0123456789abcdef'].entries()) {
  DIGITS[digit.charCodeAt(0)] = value;
  DIGITS[digit.toUpperCase().charCodeAt(0)] = value;
}

/**
 * Reads the chunks that are whole in these bytes, up to the first one that is not, is malformed, or is the last of its body. What they
 * carry is moved together, over the lines between them.
 *
 * @param from where a chunk begins
 * @returns how many chunks were read, where the last one ends, and what they carry; undefined if the first chunk is not whole
 */
export function joinChunks(bytes: Buffer, from: number, to: number) {
  let count = 0;
  let at = from;
  let dataFrom = from;
  let dataTo = from;
  for (;;) {
    const start = endOfSizeLine(bytes, at, Math.min(to, at + MAX_LINE_LENGTH));
    if (start === -1) break;
    const end = start + lineSize;
    if (lineSize === 0 || !isLineEnd(bytes, end, to)) break;
    if (count === 0) {
      dataFrom = start;
      dataTo = end;
    } else dataTo = move(bytes, dataTo, start, end);
    count++;
    at = end + 2;
  }
  return count === 0 ? undefined : { count, end: at, data: bytes.subarray(dataFrom, dataTo) };
}

/** The size in a chunk-size line, which is given without its CRLF; undefined if it is malformed. */
export function chunkSizeIn(line: string): number | undefined {
  const bytes = Buffer.from(`${line}\r\n`, 'latin1');
  return endOfSizeLine(bytes, 0, bytes.length) === bytes.length ? lineSize : undefined;
}

/** The size in the last line that was read. */
let lineSize = 0;

/**
 * Reads a chunk-size line. Extensions (RFC 9112 section 7.1.1) are read strictly and ignored.
 *
 * @returns where it ends, with its CRLF; -1 if it is malformed or not whole
 */
function endOfSizeLine(bytes: Buffer, from: number, to: number): number {
  let at = from;
  let size = 0;
  for (; at < to; at++) {
    const digit = DIGITS[bytes[at] ?? 0] ?? NO_DIGIT;
    if (digit === NO_DIGIT) break;
    size = size * 16 + digit;
  }
  if (at === from || size >= MAX_SIZE) return -1;
  while (at < to && bytes[at] === SEMICOLON) at = endOfExtension(bytes, at + 1, to);
  if (!isLineEnd(bytes, at, to)) return -1;
  lineSize = size;
  return at + 2;
}

/** @returns where it ends; `to` if it is malformed or not whole */
function endOfExtension(bytes: Buffer, from: number, to: number): number {
  const nameEnd = endOfToken(bytes, from, to);
  if (nameEnd === to || bytes[nameEnd] !== EQUALS) return nameEnd;
  const valueAt = nameEnd + 1;
  return bytes[valueAt] === QUOTE ? endOfQuoted(bytes, valueAt + 1, to) : endOfToken(bytes, valueAt, to);
}

function endOfToken(bytes: Buffer, from: number, to: number): number {
  let at = from;
  while (at < to && TOKEN_OCTETS[bytes[at] ?? 0] === 1) at++;
  return at === from ? to : at;
}

/** @param from behind the first quote */
function endOfQuoted(bytes: Buffer, from: number, to: number): number {
  for (let at = from; at < to; at++) {
    if (bytes[at] === QUOTE) return at + 1;
    if (bytes[at] === BACKSLASH) at++;
    if (VALUE_OCTETS[bytes[at] ?? 0] !== 1) return to;
  }
  return to;
}

/** Whether the CRLF of a line is at this place. */
function isLineEnd(bytes: Buffer, at: number, to: number): boolean {
  return at + 2 <= to && bytes[at] === CARRIAGE_RETURN && bytes[at + 1] === LINE_FEED;
}

/** Moves bytes to a place in front of them. @returns where they end there */
function move(bytes: Buffer, target: number, from: number, to: number): number {
  const length = to - from;
  if (length >= FEW_OCTETS) bytes.copyWithin(target, from, to);
  else for (let index = 0; index < length; index++) bytes[target + index] = bytes[from + index] ?? 0;
  return target + length;
}

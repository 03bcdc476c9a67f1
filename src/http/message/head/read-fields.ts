import { GrammarError, namesMoreThan, VALUE_OCTETS } from '../grammar.ts';
import { readName } from './field-lines.ts';
import type { FieldName } from './field-names.ts';
import { FieldSection } from './field-section.ts';

const TAB = 0x09;
const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;
const SPACE = 0x20;

/** More fields of a response, or trailers, than any server sends. */
export const MAX_FIELDS = 1_000;

/** 15 digits: the largest number of bytes that is exact in JavaScript has 16. */
const LENGTH = /^\d{1,15}$/;

/** Which heads are read at all. */
export interface HeadLimits {
  readonly maxHeaderBytes: number;
  readonly maxHeaderFields: number;
}

/** Bytes, and the text that they are in latin1. */
export interface Head {
  readonly bytes: Buffer;
  /** Where the text begins in the bytes. */
  readonly base: number;
  readonly text: string;
}

/**
 * Reads field lines, each ended by CRLF, in one scan. Refuses what makes framing ambiguous: a folded line, space before the colon,
 * control octets, a bare CR or LF, Content-Length twice or padded or beside Transfer-Encoding, any coding but `chunked`.
 *
 * @param from where the lines begin in the text
 * @param to where the last one's CRLF ends; an empty line follows
 * @param maxFields reading stops at the first field above this number
 * @throws GrammarError
 */
export function readFields(head: Head, from: number, to: number, maxFields = MAX_FIELDS): FieldSection {
  const { bytes, base, text } = head;
  const section = new FieldSection(text, to);
  const end = base + to;
  for (let at = base + from; at < end; ) {
    if (section.size >= maxFields) throw new GrammarError('too many fields');
    const name = readName(bytes, at);
    const colon = at + name.text.length;
    const lineEnd = endOfValue(bytes, colon + 1);
    const valueAt = skipBlanks(bytes, colon + 1, lineEnd);
    const valueEnd = dropBlanks(bytes, valueAt, lineEnd);
    if (valueAt === colon + 2 && valueEnd === lineEnd && bytes[colon + 1] === SPACE)
      section.add(name, at - base);
    else section.addPadded(name, at - base, valueAt - base, valueEnd - base);
    if (name.isFraming) {
      const raw = text.slice(colon + 1 - base, lineEnd - base);
      noteFraming(section, name, raw, text.slice(valueAt - base, valueEnd - base));
    }
    at = lineEnd + 2;
  }
  if (section.isChunked && section.contentLength !== undefined) {
    throw new GrammarError('Content-Length beside Transfer-Encoding');
  }
  if (namesMoreThan(maxFields, section.connection)) throw new GrammarError('a long Connection field');
  return section;
}

/** A head that arrived in pieces. */
export function textHead(text: string): Head {
  return { bytes: Buffer.from(text, 'latin1'), base: 0, text };
}

/** @param raw the value with its padding */
function noteFraming(section: FieldSection, { lower }: FieldName, raw: string, value: string): void {
  switch (lower) {
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

/** Where the value ends, which is at CRLF. */
function endOfValue(bytes: Buffer, from: number): number {
  let at = from;
  while (VALUE_OCTETS[bytes[at] ?? 0] === 1) at++;
  if (bytes[at] !== CARRIAGE_RETURN || bytes[at + 1] !== LINE_FEED) {
    throw new GrammarError('a control octet in a field');
  }
  return at;
}

function skipBlanks(bytes: Buffer, from: number, to: number): number {
  let at = from;
  while (at < to && isBlank(bytes[at])) at++;
  return at;
}

/** Where the value ends without the blanks behind it. */
function dropBlanks(bytes: Buffer, from: number, to: number): number {
  let at = to;
  while (at > from && isBlank(bytes[at - 1])) at--;
  return at;
}

function isBlank(octet: number | undefined): boolean {
  return octet === SPACE || octet === TAB;
}

/** The value behind at most one space: parsers disagree about what other padding means to a field that frames. */
function unpadded(raw: string): string {
  return raw.charCodeAt(0) === SPACE ? raw.slice(1) : raw;
}

function readContentLength(digits: string): number {
  if (!LENGTH.test(digits)) throw new GrammarError('a Content-Length that is not a plain number');
  return Number(digits);
}

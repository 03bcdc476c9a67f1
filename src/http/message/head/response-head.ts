import { STATUS_CODES } from 'node:http';
import { GrammarError, hasConnectionOption, VALUE_OCTETS } from '../grammar.ts';
import type { FieldSection } from './field-section.ts';
import { type Head, readFields } from './read-fields.ts';

/** The status line and the fields of a response, and what they say about its body and its connection. */
export interface ResponseHead {
  readonly status: number;
  readonly fields: FieldSection;
  /** Value of the Connection field, several joined by commas. */
  readonly connection: string | undefined;
  /** How the end of the body is found (RFC 9112 section 6.3). */
  readonly framing: 'none' | 'length' | 'chunked' | 'until-close';
  /** Length of the body; 0 unless the framing is `length`. */
  readonly bodyLength: number;
  /** False when the connection cannot carry another request. */
  readonly isPersistent: boolean;
  /** How long the upstream says that it keeps an idle connection. */
  readonly keepAliveMs: number | undefined;
}

const STATUS_AT = 9;
const REASON_AT = 12;
const SPACE = 0x20;
const ZERO = 0x30;

const KEEP_ALIVE_TIMEOUT = /(?<![^\s,;])timeout\s*=\s*"?(\d{1,6})/i;

/**
 * Reads a response head.
 *
 * @param to where the last field line ends in the text, which begins with the status line; an empty line follows
 * @param isHeadRequest whether it answers a HEAD request, and so has no body
 * @throws GrammarError when a parser could read it differently
 */
export function readResponseHead(head: Head, to: number, isHeadRequest: boolean): ResponseHead {
  const { text } = head;
  const isOld = text.startsWith('HTTP/1.0 ');
  if (!isOld && !text.startsWith('HTTP/1.1 ')) throw new GrammarError('not HTTP/1.1');
  const status = statusOf(text);
  const fields = readFields(head, statusLineEnd(text, to) + 2, to);
  const { contentLength, isChunked, connection } = fields;
  // RFC 9112 section 6.1: a 1.0 sender cannot chunk.
  if (isOld && isChunked) throw new GrammarError('Transfer-Encoding in HTTP/1.0');
  // RFC 9110 section 8.6, RFC 9112 section 6.1: an interim response has neither.
  if (status < 200 && (isChunked || contentLength !== undefined)) {
    throw new GrammarError('an interim response with a body');
  }
  const framing = framingOf(status, isHeadRequest, contentLength, isChunked);
  const isClosing = connection !== undefined && hasConnectionOption(connection, 'close');
  return {
    status,
    fields,
    connection,
    framing,
    bodyLength: framing === 'length' ? (contentLength ?? 0) : 0,
    isPersistent: !isOld && !isClosing && framing !== 'until-close',
    keepAliveMs: keepAliveMsOf(fields),
  };
}

function statusOf(text: string): number {
  const status = digit(text, STATUS_AT) * 100 + digit(text, STATUS_AT + 1) * 10 + digit(text, STATUS_AT + 2);
  if (!(status >= 100)) throw new GrammarError('a status that is not a number from 100 to 999');
  return status;
}

function digit(text: string, at: number): number {
  const value = text.charCodeAt(at) - ZERO;
  return value >= 0 && value <= 9 ? value : Number.NaN;
}

/** The reason phrase may be empty, and some servers then omit the space before it. */
function statusLineEnd(text: string, to: number): number {
  const end = text.indexOf('\r\n', REASON_AT);
  if (end === -1 || end >= to || (end > REASON_AT && text.charCodeAt(REASON_AT) !== SPACE)) {
    throw new GrammarError('a malformed status line');
  }
  for (let at = REASON_AT; at < end; at++) {
    if (VALUE_OCTETS[text.charCodeAt(at)] !== 1) throw new GrammarError('a control octet in the status line');
  }
  return end;
}

function framingOf(
  status: number,
  isHeadRequest: boolean,
  contentLength: number | undefined,
  isChunked: boolean,
): ResponseHead['framing'] {
  if (isHeadRequest || status < 200 || status === 204 || status === 304 || contentLength === 0) return 'none';
  if (isChunked) return 'chunked';
  return contentLength === undefined ? 'until-close' : 'length';
}

function keepAliveMsOf(fields: FieldSection): number | undefined {
  const keepAlive = fields.get('keep-alive');
  if (keepAlive === undefined) return undefined;
  const seconds = KEEP_ALIVE_TIMEOUT.exec(keepAlive)?.[1];
  return seconds === undefined ? undefined : Number(seconds) * 1000;
}

const statusLines: string[] = [];

/** Such as `HTTP/1.1 200 OK`, with its CRLF. */
export function statusLine(status: number): string {
  const known = statusLines[status];
  if (known !== undefined) return known;
  const line = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? 'unknown'}\r\n`;
  statusLines[status] = line;
  return line;
}

let date = { second: 0, text: '' };

/** The time as RFC 9110 section 5.6.7 writes it, made once a second. */
export function httpDate(): string {
  const second = Math.floor(Date.now() / 1000);
  if (second !== date.second) date = { second, text: new Date(second * 1000).toUTCString() };
  return date.text;
}

import { NameMemo } from '../../fields/field-names.ts';
import { GrammarError, readFieldSection } from '../../http1/grammar.ts';
import type { RequestHead } from '../../http1/request-head.ts';

type PlainHeaders = Record<string, string> & { host?: string };

/** The head of a plain request. No field occurs twice. */
export interface PlainHead extends RequestHead {
  /** Bytes of the head, with the empty line that ends it. */
  readonly length: number;
  readonly bodyLength: number;
}

const METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'POST', 'PUT', 'PATCH', 'DELETE']);

/** 1 for each octet that may stand in a target: visible ASCII, but no fragment. */
const TARGET_OCTETS = new Uint8Array(256).fill(1, 0x21, 0x7f);
TARGET_OCTETS['#'.charCodeAt(0)] = 0;

const END_OF_HEAD = Buffer.from('\r\n\r\n');

const VERSION = ' HTTP/1.1\r\n';

/** Fields that ask for more than a whole request and its response, and names that JavaScript or Node gives a meaning of its own. */
const NOT_PLAIN =
  /^(?:__proto__|expect|http2-settings|keep-alive|proxy-connection|set-cookie|te|trailer|transfer-encoding|upgrade)$/;

/** Lower-case names; empty for those that make a request not plain. */
const plainNames = new NameMemo((name) => {
  const lower = name.toLowerCase();
  return NOT_PLAIN.test(lower) ? '' : lower;
});

/** Objects without a prototype; V8 reads and writes those of `Object.create(null)` more slowly. */
const Headers = function Headers() {} as unknown as new () => PlainHeaders;
Headers.prototype = Object.create(null);

/**
 * Reads the head at the beginning of these bytes if it is whole and plain: a head that every parser reads in the same way, of a
 * request that asks nothing of its connection. Undefined is no verdict: Node's parser reads the bytes then.
 *
 * @param maxBytes a longer head is not plain
 */
export function readPlainHead(bytes: Buffer, maxBytes: number): PlainHead | undefined {
  const end = bytes.indexOf(END_OF_HEAD);
  if (end === -1 || end + END_OF_HEAD.length > maxBytes) return undefined;
  const text = bytes.toString('latin1', 0, end + END_OF_HEAD.length);
  const methodEnd = text.indexOf(' ');
  const method = text.slice(0, methodEnd);
  if (!METHODS.has(method) || text[methodEnd + 1] !== '/') return undefined;
  let targetEnd = methodEnd + 1;
  while (TARGET_OCTETS[text.charCodeAt(targetEnd)] === 1) targetEnd++;
  if (!text.startsWith(VERSION, targetEnd)) return undefined;
  const target = text.slice(methodEnd + 1, targetEnd);
  const read = readPlainFields(text, targetEnd + VERSION.length, end + 2);
  return read && { method, target, httpVersion: '1.1', ...read, length: text.length };
}

function readPlainFields(
  text: string,
  from: number,
  to: number,
): Pick<PlainHead, 'fields' | 'headers' | 'bodyLength'> | undefined {
  try {
    const { fields, contentLength = 0, isChunked, connection } = readFieldSection(text, from, to);
    if (isChunked || (connection !== undefined && connection.toLowerCase() !== 'keep-alive'))
      return undefined;
    const headers = byPlainName(fields);
    return headers?.host === undefined ? undefined : { fields, headers, bodyLength: contentLength };
  } catch (error) {
    if (error instanceof GrammarError) return undefined;
    throw error;
  }
}

/** Undefined if one of the names is not plain or occurs twice. */
function byPlainName(fields: readonly string[]): PlainHeaders | undefined {
  const headers = new Headers();
  for (let index = 0; index < fields.length; index += 2) {
    const name = plainNames.get(fields[index] ?? '');
    if (name === '' || headers[name] !== undefined) return undefined;
    headers[name] = fields[index + 1] ?? '';
  }
  return headers;
}

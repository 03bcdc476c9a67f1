import type { FieldValues } from '../../../domain/field-name.ts';
import { GrammarError } from '../../message/grammar.ts';
import type { FieldSection, RequestHead } from '../../message/head/field-section.ts';
import { type Head, type HeadLimits, readFields } from '../../message/head/read-fields.ts';

/** The head of a plain request. No field occurs twice. */
export class PlainHead implements RequestHead {
  readonly httpVersion = '1.1';
  readonly method: string;
  readonly target: string;
  readonly fields: FieldSection;
  /** Bytes of the head, with the empty line that ends it. */
  readonly length: number;

  constructor(method: string, target: string, fields: FieldSection, length: number) {
    this.method = method;
    this.target = target;
    this.fields = fields;
    this.length = length;
  }

  get bodyLength(): number {
    return this.fields.contentLength ?? 0;
  }

  get headers(): FieldValues {
    const headers: Record<string, string> = Object.create(null);
    this.fields.forEach((name, value) => {
      headers[name.lower] = value;
    });
    return headers;
  }

  field(name: string): string | undefined {
    return this.fields.get(name);
  }
}

const METHODS: ReadonlySet<string> = new Set([
  'GET',
  'HEAD',
  'OPTIONS',
  'QUERY',
  'POST',
  'PUT',
  'PATCH',
  'DELETE',
]);

/** 1 for each octet that may stand in a target: visible ASCII, but no fragment. */
const TARGET_OCTETS = new Uint8Array(256).fill(1, 0x21, 0x7f);
TARGET_OCTETS['#'.charCodeAt(0)] = 0;

const END_OF_HEAD = '\r\n\r\n';

/** Most heads are shorter than this. In a longer head, the end is found among the bytes, so that no long body is converted to text. */
const SCAN_LENGTH = 2_048;

const VERSION = ' HTTP/1.1\r\n';

/** Fields that ask for more than a whole request and its response, and names that JavaScript or Node gives a meaning of its own. */
const NOT_PLAIN: ReadonlySet<string> = new Set([
  ...['__proto__', 'expect', 'http2-settings', 'keep-alive', 'proxy-connection', 'set-cookie', 'te'],
  ...['trailer', 'transfer-encoding', 'upgrade'],
]);

/**
 * Reads the head at the beginning of these bytes if it is whole and plain: a head that every parser reads in the same way, of a
 * request that asks nothing of its connection. Undefined is no verdict: Node's parser reads the bytes then.
 *
 * @param limits a head with more bytes or fields is not plain
 */
export function readPlainHead(bytes: Buffer, limits: HeadLimits): PlainHead | undefined {
  const text = headText(bytes, limits.maxHeaderBytes);
  if (text === undefined) return undefined;
  const methodEnd = text.indexOf(' ');
  const method = text.slice(0, methodEnd);
  if (!METHODS.has(method) || text[methodEnd + 1] !== '/') return undefined;
  let targetEnd = methodEnd + 1;
  while (TARGET_OCTETS[text.charCodeAt(targetEnd)] === 1) targetEnd++;
  if (!text.startsWith(VERSION, targetEnd)) return undefined;
  const from = targetEnd + VERSION.length;
  const fields = readPlainFields({ bytes, base: 0, text }, from, text.length - 2, limits.maxHeaderFields);
  if (fields === undefined) return undefined;
  return new PlainHead(method, text.slice(methodEnd + 1, targetEnd), fields, text.length);
}

/** The head at the beginning of these bytes, with the empty line that ends it; undefined if it is not whole, or too long. */
function headText(bytes: Buffer, maxBytes: number): string | undefined {
  const text = bytes.toString('latin1', 0, SCAN_LENGTH);
  const start = text.indexOf(END_OF_HEAD);
  const isShort = start !== -1 || bytes.length <= SCAN_LENGTH;
  const end = isShort ? start : bytes.indexOf(END_OF_HEAD, SCAN_LENGTH - END_OF_HEAD.length + 1, 'latin1');
  const length = end + END_OF_HEAD.length;
  if (end === -1 || length > maxBytes) return undefined;
  return isShort ? text.slice(0, length) : bytes.toString('latin1', 0, length);
}

/** Undefined if the request is not plain. */
function readPlainFields(head: Head, from: number, to: number, maxFields: number): FieldSection | undefined {
  let fields: FieldSection;
  try {
    fields = readFields(head, from, to, maxFields);
  } catch (error) {
    if (error instanceof GrammarError) return undefined;
    throw error;
  }
  const { isChunked, connection } = fields;
  if (isChunked || (connection !== undefined && connection.toLowerCase() !== 'keep-alive')) return undefined;
  return fields.has('host') && isEachPlain(fields) ? fields : undefined;
}

/** False if one of the names is not plain or occurs twice. */
function isEachPlain({ names }: FieldSection): boolean {
  const seen = new Set<string>();
  for (const { lower } of names) {
    if (NOT_PLAIN.has(lower)) return false;
    seen.add(lower);
  }
  return seen.size === names.length;
}

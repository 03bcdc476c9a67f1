/** Just enough of HTTP/1.1 to know where an answer ends: the load generators' share of the machine has to be small. */

const STATUS_AT = 9;
const HEAD_END = '\r\n\r\n';
const DEGRADED = '\r\nService-RateLimit-Mode: degraded';

/** The bytes of one keep-alive connection, cut into answers. */
export class AnswerReader {
  #rest = '';
  /** Whether the last answer says that its request was not counted. */
  isDegraded = false;

  /** Takes a chunk in latin1. @returns the status of the answer that it completed; 0 while one is under way */
  push(chunk: string): number {
    const text = this.#rest === '' ? chunk : this.#rest + chunk;
    const headEnd = text.indexOf(HEAD_END);
    if (headEnd === -1 || text.length < headEnd + HEAD_END.length + bodyLength(text, headEnd)) {
      this.#rest = text;
      return 0;
    }
    this.#rest = '';
    this.isDegraded = text.includes(DEGRADED);
    return Number(text.slice(STATUS_AT, STATUS_AT + 3));
  }
}

function bodyLength(text: string, headEnd: number): number {
  const length = /\r\ncontent-length: *(\d+)/i.exec(text.slice(0, headEnd))?.[1];
  if (length !== undefined) return Number(length);
  if (!/\r\ntransfer-encoding: *chunked/i.test(text.slice(0, headEnd))) return 0;
  const lastChunk = text.indexOf('\r\n0\r\n\r\n', headEnd);
  return lastChunk === -1 ? Number.POSITIVE_INFINITY : lastChunk + 7 - headEnd - HEAD_END.length;
}

/** The same GET that wrk sends for this account: see keys.lua. */
export function requestOf(account: number, path: string): string {
  return [
    `GET ${path} HTTP/1.1`,
    'Host: 127.0.0.1',
    `Authorization: Bearer token-${account}`,
    `X-Service-Account: acct_${account}`,
    `X-Organization: org_${Math.ceil(account / 10)}`,
    '\r\n',
  ].join('\r\n');
}

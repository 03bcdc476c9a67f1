/** Just enough of HTTP/1.1 to know where a message ends: the load generators' share of the machine has to be small. */

const STATUS_AT = 9;
const HEAD_END = '\r\n\r\n';
const LAST_CHUNK = '\r\n0\r\n';
const DEGRADED = '\r\nService-RateLimit-Mode: degraded';

/** The bytes of one keep-alive connection, in one direction, cut into messages. */
export class MessageReader {
  /** What has arrived and may still matter. */
  #text = '';
  /** Of the message whose body arrives; empty while a head does. */
  #head = '';
  /** Of the body, still to come; undefined if it is chunked. */
  #bytesLeft: number | undefined;

  /** Takes a chunk in latin1. @returns the heads of the messages that it completed */
  push(chunk: string): readonly string[] {
    this.#text += chunk;
    const heads: string[] = [];
    while (this.#readHead() && this.#readBody()) {
      heads.push(this.#head);
      this.#head = '';
    }
    return heads;
  }

  #readHead(): boolean {
    if (this.#head !== '') return true;
    const end = this.#text.indexOf(HEAD_END);
    if (end === -1) return false;
    this.#head = this.#text.slice(0, end + HEAD_END.length);
    const length = /\r\ncontent-length: *(\d+)/i.exec(this.#head)?.[1];
    const isChunked = length === undefined && /\r\ntransfer-encoding: *chunked/i.test(this.#head);
    this.#bytesLeft = isChunked ? undefined : Number(length ?? 0);
    // The end of the head's last line precedes the first chunk, as the end of a chunk precedes the next.
    this.#text = this.#text.slice(isChunked ? end + 2 : end + HEAD_END.length);
    return true;
  }

  #readBody(): boolean {
    if (this.#bytesLeft === undefined) return this.#readChunks();
    const taken = Math.min(this.#bytesLeft, this.#text.length);
    this.#bytesLeft -= taken;
    this.#text = this.#text.slice(taken);
    return this.#bytesLeft === 0;
  }

  #readChunks(): boolean {
    const last = this.#text.indexOf(LAST_CHUNK);
    const end = last === -1 ? -1 : this.#text.indexOf(HEAD_END, last + LAST_CHUNK.length - 2);
    const isWhole = end !== -1;
    // Of an unfinished body, only where the last chunk may have begun.
    this.#text = this.#text.slice(
      isWhole ? end + HEAD_END.length : last === -1 ? 1 - LAST_CHUNK.length : last,
    );
    return isWhole;
  }
}

/** Whether a response says that its request was not counted. */
export function isDegraded(head: string): boolean {
  return head.includes(DEGRADED);
}

export function statusOf(head: string): number {
  return Number(head.slice(STATUS_AT, STATUS_AT + 3));
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

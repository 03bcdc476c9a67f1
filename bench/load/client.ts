import { once } from 'node:events';
import { createConnection, type Socket } from 'node:net';
import { setImmediate } from 'node:timers/promises';

/** An answer that takes longer is not coming. */
const ANSWER_MS = 30_000;

/** One connection, opened again after each close. All text is latin1: one character is one octet. */
export class Client {
  readonly #port: number;
  #socket: Socket | undefined;
  #reader = new MessageReader();

  constructor(port: number) {
    this.#port = port;
  }

  /** Sends bytes, in a write for each text, and waits for the responses. @returns the status of the last one; 0 if there was none */
  async send(bytes: string | readonly string[], responses = 1): Promise<number> {
    const socket = await this.#open();
    const status = this.#answer(socket, responses);
    if (typeof bytes === 'string') socket.write(bytes, 'latin1');
    else await writeEach(socket, bytes);
    return status;
  }

  close(): void {
    this.#socket?.destroy();
    this.#socket = undefined;
  }

  async #open(): Promise<Socket> {
    if (this.#socket?.writable === true) return this.#socket;
    const socket = createConnection(this.#port, '127.0.0.1').setEncoding('latin1').setNoDelay(true);
    socket.on('error', () => undefined).on('timeout', () => socket.destroy());
    await once(socket, 'connect');
    this.#socket = socket;
    this.#reader = new MessageReader();
    return socket;
  }

  #answer(socket: Socket, count: number): Promise<number> {
    const statuses: number[] = [];
    socket.setTimeout(ANSWER_MS);
    return new Promise((resolve) => {
      const end = () => {
        socket.off('data', take).off('close', end).setTimeout(0);
        resolve(statuses.at(-1) ?? 0);
      };
      const take = (chunk: unknown) => {
        const heads = this.#reader.push(String(chunk));
        statuses.push(...heads.map(statusOf));
        if (heads.some((head) => /\r\nconnection: close/i.test(head))) this.close();
        if (statuses.length >= count) end();
      };
      socket.on('data', take).on('close', end);
    });
  }
}

async function writeEach(socket: Socket, pieces: readonly string[]): Promise<void> {
  for (const piece of pieces) {
    await new Promise((resolve) => socket.write(piece, 'latin1', resolve));
    await setImmediate();
  }
}

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

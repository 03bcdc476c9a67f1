import { once } from 'node:events';
import { createConnection, type Socket } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { MessageReader, statusOf } from './answer.ts';

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

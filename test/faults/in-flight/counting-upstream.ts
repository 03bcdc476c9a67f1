import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';

/** More requests of one Account were in flight than its limit. */
export interface Excess {
  readonly atMs: number;
  readonly account: string;
  readonly inFlight: number;
}

/** An upstream that counts what is in flight for each Account. The path says how it answers: `/slow`, `/stream`, `/hang`, `/break`. */
export class CountingUpstream {
  readonly excesses: Excess[] = [];
  requests = 0;
  /** The most that were in flight for one Account. */
  most = 0;
  readonly #limit: number;
  readonly #inFlight = new Map<string, number>();
  readonly #server = createServer((request, response) => void this.#answer(request, response));

  private constructor(limit: number) {
    this.#limit = limit;
    this.#server.on('upgrade', (request, socket: Socket) => this.#open(request, socket));
  }

  static async start(limit: number): Promise<CountingUpstream> {
    const upstream = new CountingUpstream(limit);
    upstream.#server.listen(0, '127.0.0.1');
    await once(upstream.#server, 'listening');
    return upstream;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  get inFlight(): number {
    return [...this.#inFlight.values()].reduce((sum, count) => sum + count, 0);
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
  }

  /** @returns ends the request; only the first call counts */
  #begin(request: IncomingMessage): () => void {
    const account = `${request.headers['x-account-id']}`;
    const inFlight = (this.#inFlight.get(account) ?? 0) + 1;
    this.#inFlight.set(account, inFlight);
    this.requests += 1;
    if (inFlight > this.#limit) void this.#judge(account);
    else this.most = Math.max(this.most, inFlight);
    let hasEnded = false;
    return () => {
      if (hasEnded) return;
      hasEnded = true;
      this.#inFlight.set(account, (this.#inFlight.get(account) ?? 0) - 1);
    };
  }

  /** The end of a connection is noticed in the turn of the event loop after it has arrived, behind a request that came later. */
  async #judge(account: string): Promise<void> {
    const atMs = performance.now();
    for (let turn = 0; turn < 5; turn++) await pause(2).then(() => new Promise(setImmediate));
    const inFlight = this.#inFlight.get(account) ?? 0;
    this.most = Math.max(this.most, inFlight);
    if (inFlight > this.#limit) this.excesses.push({ atMs, account, inFlight });
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const end = this.#begin(request);
    response.on('close', end).on('error', end);
    request.on('error', () => {}).resume();
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://upstream');
    const ms = Number(searchParams.get('ms') ?? 0);
    if (request.method === 'POST') await once(request, 'end').catch(() => undefined);
    if (pathname === '/hang') return;
    if (pathname === '/stream') {
      response.writeHead(200, { 'Content-Type': 'text/event-stream' });
      for (let part = 0; part < 5 && !response.destroyed; part++) {
        response.write(`data: ${part}\n\n`);
        await pause(ms / 5);
      }
    } else await pause(ms);
    end();
    if (pathname === '/break') response.destroy();
    else response.end('ok');
  }

  #open(request: IncomingMessage, socket: Socket): void {
    const end = this.#begin(request);
    socket.on('end', end).on('close', end).on('error', end).resume();
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
    const ms = Number(new URL(request.url ?? '', 'http://upstream').searchParams.get('ms') ?? 0);
    setTimeout(() => {
      end();
      socket.destroySoon();
    }, ms).unref();
  }
}

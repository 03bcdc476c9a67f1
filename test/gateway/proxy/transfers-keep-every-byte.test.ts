import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { afterEach, expect, it } from 'vitest';
import { AnswerReader } from '../../fixtures/answers.ts';
import { newCertificate } from '../../fixtures/certificate.ts';
import { PLENTY } from '../../fixtures/configuration.ts';
import { ContentCheck, contentOf } from '../../fixtures/content.ts';
import { type Next, openFuzz } from '../../fixtures/fuzz.ts';
import { startGateway, type TestGateway } from '../../fixtures/gateway.ts';
import { connectRaw } from '../../fixtures/raw.ts';
import { messageOf, planVisit, type Transfer, type Visit } from '../../fixtures/transfers.ts';
import { startUpstream } from '../../fixtures/upstream.ts';

/** Transfers of all gateways together. */
const FUZZ = openFuzz(800, 20_261_123);
const CONNECTIONS_AT_ONCE = 24;

const GATEWAYS = [
  ['plain', 1],
  ['plain', 3],
  ['plain', 8],
  ['plain', 64],
  ['TLS', 1],
  ['TLS', 3],
  ['TLS', 8],
  ['TLS', 64],
] as const;

/** What has gone wrong, and how often each request was run. */
interface Findings {
  readonly faults: string[];
  readonly runs: Map<number, number>;
  whole: number;
}

/** Answers each request with its own body, and checks the one that arrives. */
function answering(findings: Findings) {
  return async (request: IncomingMessage, response: ServerResponse) => {
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://upstream');
    const id = Number(pathname.slice(pathname.lastIndexOf('t') + 1));
    findings.runs.set(id, (findings.runs.get(id) ?? 0) + 1);
    const content = contentOf(2 * id + 1, Number(searchParams.get('download')));
    const early = searchParams.get('early') === 'true' ? content.length >> 1 : 0;
    response.on('error', () => {}).setHeader('X-Id', id);
    if (searchParams.get('chunked') === 'false') response.setHeader('Content-Length', content.length);
    if (early > 0) response.write(content.subarray(0, early));
    const check = new ContentCheck(2 * id, Number(searchParams.get('upload')));
    const isWhole = await receive(request, check);
    if (check.wrongAt !== undefined || (isWhole && !check.isWhole))
      findings.faults.push(`${id}: the upstream got ${check.length} bytes, wrong at ${check.wrongAt}`);
    response.end(content.subarray(early));
  };
}

/** @returns false if the upload broke off, because its client has left */
async function receive(request: IncomingMessage, check: ContentCheck): Promise<boolean> {
  try {
    for await (const chunk of request) check.take(chunk as Buffer);
    return true;
  } catch {
    return false;
  }
}

/** One connection: sends what its plan says, and checks the answers in their order. */
class Client {
  readonly #socket: Socket;
  readonly #visit: Visit;
  readonly #findings: Findings;
  readonly #next: Next;
  readonly #expected: Transfer[];
  #check: ContentCheck | undefined;
  #carried = 0;
  #onAnswered = (): void => {};

  constructor(socket: Socket, visit: Visit, next: Next, findings: Findings) {
    this.#socket = socket;
    this.#visit = visit;
    this.#next = next;
    this.#findings = findings;
    this.#expected = [...visit.transfers];
    const reader = new AnswerReader({
      onHead: (status, head) => this.#begin(status, head),
      onBody: (chunk) => {
        this.#check?.take(chunk);
        this.#carry(chunk.length);
      },
      onEnd: () => this.#end(),
    });
    socket
      .on('error', () => {})
      .on('data', (bytes) => {
        try {
          reader.read(bytes);
        } catch (error) {
          this.#fault(String(error));
          socket.destroy();
        }
      });
  }

  async run(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#socket.once('close', () => resolve()));
    const { transfers, isPipelined, leavesAfter } = this.#visit;
    for (const transfer of transfers) {
      const answered = new Promise<void>((resolve) => {
        this.#onAnswered = resolve;
      });
      await this.#send(messageOf(this.#next, transfer));
      if (!isPipelined) await Promise.race([answered, closed]);
    }
    await closed;
    if (this.#check?.wrongAt !== undefined) this.#fault(`the answer is wrong at ${this.#check.wrongAt}`);
    if (leavesAfter === undefined && this.#expected.length > 0) this.#fault('the connection was closed');
  }

  async #send(message: Buffer): Promise<void> {
    for (let at = 0; at < message.length && this.#socket.writable; ) {
      const piece = message.subarray(at, at + 1 + this.#next(this.#visit.step));
      this.#socket.write(piece);
      at += piece.length;
      this.#carry(piece.length);
      await setImmediate();
    }
  }

  /** Leaves where the plan says so. */
  #carry(bytes: number): void {
    this.#carried += bytes;
    if (this.#carried <= (this.#visit.leavesAfter ?? Number.POSITIVE_INFINITY)) return;
    if (this.#next(2) === 0 || 'encrypted' in this.#socket) this.#socket.destroy();
    else this.#socket.resetAndDestroy();
  }

  #begin(status: number, head: string): void {
    const transfer = this.#expected[0];
    const id = /^x-id: (\d+)$/im.exec(head)?.[1];
    if (status !== 200 || Number(id) !== transfer?.id) this.#fault(`status ${status} of ${id}`);
    this.#check = new ContentCheck(2 * Number(id) + 1, transfer?.download ?? 0);
  }

  #end(): void {
    if (this.#check?.isWhole !== true)
      this.#fault(`the client got ${this.#check?.length} bytes, wrong at ${this.#check?.wrongAt}`);
    this.#check = undefined;
    this.#expected.shift();
    this.#findings.whole++;
    if (this.#expected.length === 0) this.#socket.destroy();
    this.#onAnswered();
  }

  #fault(what: string): void {
    this.#findings.faults.push(`${JSON.stringify(this.#expected[0])}: ${what}`);
  }
}

const certificate = newCertificate();

let gateway: TestGateway;
afterEach(() => gateway.close());

it.each(GATEWAYS)(
  'each byte of each body arrives where it belongs: %s, %i connections to the upstream',
  {
    timeout: 60_000 + FUZZ.cases * 50,
  },
  async (kind, connections) => {
    const findings: Findings = { faults: [], runs: new Map(), whole: 0 };
    const upstream = await startUpstream(answering(findings));
    gateway = await startGateway({
      upstream,
      limits: PLENTY,
      settings: {
        listen: { host: '127.0.0.1', port: 0, ...(kind === 'TLS' && { tls: certificate }) },
        upstream: { url: upstream.url, connections },
      },
    });
    let planned = 0;
    let kept = 0;
    const visitor = async () => {
      while (planned < FUZZ.cases / GATEWAYS.length && findings.faults.length === 0) {
        const visit = planVisit(FUZZ.next, planned);
        planned += visit.transfers.length;
        if (visit.leavesAfter === undefined) kept += visit.transfers.length;
        await new Client(await connectRaw(gateway.url), visit, FUZZ.next, findings).run();
      }
    };
    await Promise.all(Array.from({ length: CONNECTIONS_AT_ONCE }, visitor));
    expect(findings.faults, `seed ${FUZZ.seed}`).toEqual([]);
    expect(findings.whole).toBeGreaterThanOrEqual(kept);
    expect([...findings.runs].filter(([, runs]) => runs > 1)).toEqual([]);
    if (FUZZ.isLong)
      console.log(
        `${kind}, ${connections}: ${planned} transfers, ${findings.whole} whole, seed ${FUZZ.seed}`,
      );
  },
);

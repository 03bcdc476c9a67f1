import { createHash, type Hash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { Pool } from '../../../src/http/client/pool.ts';
import type { ChunkMemory, ResponseHandler, Transfer } from '../../../src/http/client/request.ts';
import { FieldLines } from '../../../src/http/message/head/field-lines.ts';
import type { ResponseHead } from '../../../src/http/message/head/response-head.ts';
import { generatedCases } from '../../fixtures/generated-cases.ts';
import { random } from '../../fixtures/random.ts';

/** `WEIR_TEST_TRANSFERS=50000` for the long form. */
const TRANSFERS = Number(process.env.WEIR_TEST_TRANSFERS ?? generatedCases(2_000));
const AT_ONCE = 24;
const MAX_BYTES = 3 << 20;

/** Bodies are slices of this. */
const MATERIAL = randomBytes(2 * MAX_BYTES);

const LIMITS = {
  connections: 8,
  connectTimeoutMs: 20_000,
  headersTimeoutMs: 20_000,
  bodyTimeoutMs: 20_000,
  keepAliveTimeoutMs: 20_000,
};

const MODES = ['length', 'chunked', 'close'] as const;
const READERS = ['fast', 'slow', 'hoarding'] as const;

interface Plan {
  readonly offset: number;
  readonly length: number;
  readonly mode: (typeof MODES)[number];
  readonly reader: (typeof READERS)[number];
  readonly uploadLength: number | undefined;
  readonly isUploadChunked: boolean;
  /** Bytes of each write at both ends. */
  readonly step: number;
}

function planOf(next: (below: number) => number): Plan {
  const lengths = [0, next(3), next(20_000), next(20_000), next(200_000), next(200_000), next(MAX_BYTES)];
  const upload = next(4) === 0 ? (lengths[next(lengths.length)] ?? 0) : undefined;
  return {
    offset: next(MAX_BYTES),
    length: lengths[next(lengths.length)] ?? 0,
    // Rarely: a connection that has to be closed is not reused.
    mode: next(20) === 0 ? 'close' : (MODES[next(2)] ?? 'length'),
    reader: READERS[next(READERS.length)] ?? 'fast',
    uploadLength: upload,
    isUploadChunked: next(2) === 0,
    step: [1_000, 16_384, 70_000, 1 << 20][next(4)] ?? 16_384,
  };
}

function* slices(offset: number, length: number, step: number): Generator<Buffer> {
  for (let at = 0; at < length; at += step) {
    yield MATERIAL.subarray(offset + at, offset + Math.min(length, at + step));
  }
}

function digestOf(offset: number, length: number): string {
  return createHash('sha1')
    .update(MATERIAL.subarray(offset, offset + length))
    .digest('hex');
}

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const query = new URL(request.url ?? '', 'http://upstream').searchParams;
  const [offset, length, step] = ['offset', 'length', 'step'].map((name) => Number(query.get(name)));
  const hash = createHash('sha1');
  for await (const chunk of request) hash.update(chunk as Buffer);
  response.setHeader('X-Uploaded', hash.digest('hex'));
  if (query.get('mode') === 'length') response.setHeader('Content-Length', String(length));
  if (query.get('mode') === 'close') {
    response.setHeader('Connection', 'close');
    response.useChunkedEncodingByDefault = false;
  }
  Readable.from(slices(offset ?? 0, length ?? 0, step ?? 1)).pipe(response);
}

/** Reads as its plan says: at once, with pauses, or keeping each chunk for a while before it looks at it. */
class Reader implements ResponseHandler {
  readonly ended: Promise<string>;
  readonly #kind: Plan['reader'];
  readonly #hash: Hash = createHash('sha1');
  #held: Buffer[] = [];
  #uploaded = '';
  #transfer: Transfer | undefined;
  #resolve: (result: string) => void = () => {};
  #reject: (error: Error) => void = () => {};

  constructor(kind: Plan['reader']) {
    this.#kind = kind;
    this.ended = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }

  onConnection(transfer: Transfer): void {
    this.#transfer = transfer;
  }

  onInterim(): void {}

  onHead({ fields }: ResponseHead): void {
    this.#uploaded = fields.get('x-uploaded') ?? '';
  }

  onData(chunk: Buffer): void {
    if (this.#kind === 'fast') this.#hash.update(chunk);
    else this.#held.push(chunk);
    // The last chunk of a response asks for this as well, and nobody takes it back.
    if (this.#kind === 'slow') this.#transfer?.pause();
  }

  onWholeBody(text: string): void {
    this.onData(Buffer.from(text, 'latin1'));
  }

  onFlush(): ChunkMemory {
    if (this.#kind === 'fast') return 'released';
    if (this.#kind === 'slow') {
      setImmediate(() => {
        this.#hashHeld();
        this.#transfer?.resume();
      });
      return 'kept';
    }
    if (this.#held.length > 8) this.#hashHeld();
    return this.#held.length === 0 ? 'released' : 'kept';
  }

  onEnd(): void {
    this.#transfer = undefined;
    // Later than the next request on this connection, perhaps.
    setTimeout(() => {
      this.#hashHeld();
      this.#resolve(`${this.#uploaded} ${this.#hash.digest('hex')}`);
    }, 1);
  }

  onError(error: Error): void {
    this.#reject(error);
  }

  #hashHeld(): void {
    for (const chunk of this.#held.splice(0)) this.#hash.update(chunk);
  }
}

let server: Server;
let pool: Pool;
let connectionCount = 0;
beforeAll(async () => {
  server = createServer((request, response) => void answer(request, response));
  server.on('connection', () => connectionCount++);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  pool = new Pool(new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`), LIMITS);
});
afterAll(async () => {
  pool.destroy();
  server.closeAllConnections();
  server.close();
  await once(server, 'close');
});

async function transfer(plan: Plan): Promise<void> {
  const { offset, length, mode, step, uploadLength, isUploadChunked, reader } = plan;
  const handler = new Reader(reader);
  const body = uploadLength === undefined ? null : Readable.from(slices(offset, uploadLength, step));
  pool.dispatch({
    method: body === null ? 'GET' : 'PUT',
    target: `/?offset=${offset}&length=${length}&mode=${mode}&step=${step}`,
    lines: new FieldLines(),
    body,
    bodyLength: isUploadChunked ? undefined : uploadLength,
    handler,
  });
  const expected = `${digestOf(offset, uploadLength ?? 0)} ${digestOf(offset, length)}`;
  const result = await handler.ended;
  if (result !== expected) expect(result, JSON.stringify(plan)).toBe(expected);
}

it(`${TRANSFERS} transfers of all kinds through one pool arrive as they were sent`, {
  timeout: 120_000 + TRANSFERS * 100,
}, async () => {
  const seed = Number(process.env.WEIR_TEST_SEED ?? Date.now() % 1_000_000);
  const next = random(seed);
  let begun = 0;
  let closing = 0;
  const worker = async () => {
    while (begun++ < TRANSFERS) {
      const plan = planOf(next);
      if (plan.mode === 'close') closing++;
      await transfer(plan).catch((error: Error) => {
        throw new Error(`${error.message}; seed ${seed}, ${JSON.stringify(plan)}`, { cause: error });
      });
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  expect(pool.inFlight).toBe(0);
  // All others were reused.
  expect(connectionCount).toBeLessThanOrEqual(LIMITS.connections + closing);
});

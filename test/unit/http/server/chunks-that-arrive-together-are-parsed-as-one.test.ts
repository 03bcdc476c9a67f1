import { createServer, type IncomingMessage, type Server } from 'node:http';
import { Duplex } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { type BodyEnd, bodyEndOf } from '../../../../src/http/server/node/body-end.ts';
import { mutated, type Next, openFuzz, pick } from '../../../fixtures/fuzz.ts';

const { cases: CASES, seed: SEED, next } = openFuzz(3_000, 46_004);

const LIMITS = { maxHeaderBytes: 16_384, maxHeaderFields: 128 };

const bodyEnd = (): BodyEnd => {
  const body = bodyEndOf({ headers: { 'transfer-encoding': 'chunked' } } as IncomingMessage, LIMITS);
  if (body === undefined) throw new Error('a chunked request has a body');
  return body;
};

interface NodeReading {
  readonly body: string;
  readonly chunks: number;
}

/** What Node's server reads of a chunked request; undefined where it refuses the bytes or waits for more. */
class NodeReader {
  readonly #server: Server;
  #read: NodeReading | undefined;

  constructor() {
    this.#server = createServer((request) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk)).on('error', () => {});
      request.on('end', () => {
        if (request.complete)
          this.#read = { body: Buffer.concat(chunks).toString('latin1'), chunks: chunks.length };
      });
    });
    this.#server.on('clientError', (_error, socket) => socket.destroy());
  }

  async read(pieces: readonly Buffer[]): Promise<NodeReading | undefined> {
    this.#read = undefined;
    const line = new Duplex({ read() {}, write: (_chunk, _encoding, done) => done() });
    this.#server.emit('connection', Object.assign(line, { setTimeout: () => line }));
    line.push('POST / HTTP/1.1\r\nHost: weir\r\nTransfer-Encoding: chunked\r\n\r\n');
    for (const piece of pieces) line.push(piece);
    for (let turn = 0; turn < 3; turn++) await setImmediate();
    line.destroy();
    return this.#read;
  }
}

function chunkedOf(next: Next): string {
  let text = '';
  for (let count = next(12); count > 0; count--) {
    const data = pick(next, ['x', '\r\n', '0\r\n\r\n', 'a'.repeat(1 + next(80)), '1\r\nx\r\n']);
    const size = pick(next, ['', '0', '00000000000000000']) + data.length.toString(16);
    text += `${size}${pick(next, ['', '', '', ';a', ';a=b', ';a="b;\\"c"'])}\r\n${data}\r\n`;
  }
  return `${text}0\r\n${pick(next, ['', '', 'X-T: 1\r\n'])}\r\n`;
}

const PIECES = [
  '\r\n',
  '\n',
  '\r',
  ' ',
  ';',
  '=',
  '"',
  '\\',
  '0',
  'f',
  '1\r\nx\r\n',
  '0\r\n\r\n',
  ';;a',
  '\0',
] as const;

/** Reads in which the body arrives. */
function readsOf(next: Next, text: string): Buffer[] {
  const reads: Buffer[] = [];
  const most = pick(next, [1, 7, 60, 1_000]);
  for (let at = 0; at < text.length; ) {
    const end = at + 1 + next(most);
    reads.push(Buffer.from(text.slice(at, end), 'latin1'));
    at = end;
  }
  return reads;
}

/** Reads a body as it arrives. `sent` is what was read of it, `parsed` what Node's parser gets in its place. */
function readInReads(reads: readonly Buffer[]) {
  const body = bodyEnd();
  const sent: Buffer[] = [];
  const parsed: Buffer[] = [];
  for (const read of reads) {
    if (body.isDone || body.brokenBy !== undefined) break;
    const copy = Buffer.from(read);
    const { pieces, end } = body.read(read);
    parsed.push(...pieces);
    sent.push(copy.subarray(0, end));
  }
  return { body, sent, parsed };
}

it(`of ${CASES} bodies, each is refused or has the bytes that Node reads in what was sent`, {
  timeout: 60_000 + CASES * 10,
}, async () => {
  const node = new NodeReader();
  let taken = 0;
  for (let count = 0; count < CASES; count++) {
    let text = chunkedOf(next);
    for (let done = next(3); done > 0; done--) text = mutated(next, text, PIECES, (draw) => 2 * draw(2));
    const { body, sent, parsed } = readInReads(readsOf(next, text));
    const context = `seed ${SEED}, case ${count}: ${JSON.stringify(text)}`;
    const asSent = await node.read(sent);
    if (body.isDone) {
      taken++;
      expect(asSent, context).toBeDefined();
      expect((await node.read(parsed))?.body, context).toBe(asSent?.body);
      // What is not refused is not whole.
    } else if (body.brokenBy === undefined) expect(asSent, context).toBeUndefined();
  }
  // Neither too tame to find anything nor so wild that all are refused.
  expect(taken).toBeGreaterThan(CASES / 4);
  expect(taken).toBeLessThan((CASES * 9) / 10);
});

it.each([
  ['plain', '1\r\nx\r\n'],
  ['with an extension', '1;a="b"\r\nx\r\n'],
  ['with leading zeros', '00000000000000001\r\nx\r\n'],
])('ten thousand chunks of one byte, %s, are a few for the parser', async (_, chunk) => {
  const text = `${chunk.repeat(10_000)}0\r\n\r\n`;
  const { pieces } = bodyEnd().read(Buffer.from(text));
  const read = await new NodeReader().read(pieces);
  expect(read?.body).toBe('x'.repeat(10_000));
  expect(read?.chunks).toBeLessThan(10);
});

it('a malformed line is the last that is parsed', () => {
  const body = bodyEnd();
  const { pieces } = body.read(Buffer.from(`1;;a\r\nx\r\n${'1\r\nx\r\n'.repeat(10_000)}`));
  expect(Buffer.concat(pieces).toString()).toBe('1;;a\r\n');
  expect(body.brokenBy?.status).toBe(400);
});

it('the first trailer above the limit is the last that is parsed', () => {
  const body = bodyEnd();
  const { pieces } = body.read(Buffer.from(`0\r\n${'a:\r\n'.repeat(3_000)}\r\n`));
  expect(Buffer.concat(pieces).toString()).toBe(`0\r\n${'a:\r\n'.repeat(129)}`);
  expect(body.brokenBy?.status).toBe(431);
});

import { request } from 'node:http';
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { inPiecesOf, writePieces } from '../../fixtures/settling.ts';
import { SharedSettling } from './shared-settling.ts';

const shared = new SharedSettling();

const COMPLETION = JSON.stringify({ choices: [{ text: 'größer ✓' }], usage: { total_tokens: 812 } });

const events = (end: string, ...events: string[]) =>
  events.map((one) => one.replaceAll('\n', end) + end + end).join('');
/** Of so many bytes. */
const padded = (bytes: number) => ' '.repeat(bytes - Buffer.byteLength(COMPLETION)) + COMPLETION;

const EVENTS = [
  ': a comment',
  'data: {"usage":{"total_tokens":7}}',
  'event: message\nid: 1\ndata: {"choices":[{"delta":"größer ✓"}],"usage":null}',
  'data: {"usage":\ndata: {"total_tokens": 812}}',
  'data: {"choices":[{"delta":"\\"total_tokens\\":9"}]}',
  'data:[DONE]',
];

const LONG_TEXT = 'image'.repeat(250_000);

/** A body, and the fields that come with it. */
type Body = [what: string, body: Buffer | string, fields?: Record<string, string>];

const BODIES: Body[] = [
  ['a JSON body', COMPLETION],
  ['gzip', gzipSync(COMPLETION), { 'Content-Encoding': 'gzip' }],
  ['deflate', deflateSync(COMPLETION), { 'Content-Encoding': 'deflate' }],
  ['br', brotliCompressSync(COMPLETION), { 'Content-Encoding': 'br' }],
  ...['\n', '\r\n', '\r'].map((end): Body => {
    const name = JSON.stringify(end);
    return [`events with ${name}`, events(end, ...EVENTS), { 'Content-Type': 'text/event-stream' }];
  }),
  [
    'events with a byte order mark',
    `\uFEFF${events('\n', 'data: {"usage":{"total_tokens":812}}')}`,
    { 'Content-Type': 'text/event-stream' },
  ],
  [
    'events without an end',
    events('\n', ...EVENTS).trimEnd(),
    { 'Content-Type': 'Text/Event-Stream; charset=utf-8' },
  ],
  [
    'encoded events',
    gzipSync(events('\n', ...EVENTS)),
    { 'Content-Type': 'text/event-stream', 'Content-Encoding': 'gzip' },
  ],
  [
    'lines of JSON',
    `{"usage":{"total_tokens":3}}\n${COMPLETION}\n`,
    { 'Content-Type': 'application/x-ndjson' },
  ],
  ['a body of 1 MiB', padded(1_048_576), {}],
  ['a longer body', `{"usage":{"total_tokens":812},"data":"${LONG_TEXT}"}`],
  [
    'a longer body in gzip',
    gzipSync(`{"usage":{"total_tokens":812},"data":"${LONG_TEXT}"}`),
    { 'Content-Encoding': 'gzip' },
  ],
  [
    'a longer event before others',
    events('\n', `data: {"image":"${LONG_TEXT}"}`, ...EVENTS),
    { 'Content-Type': 'text/event-stream' },
  ],
  [
    'events of 3 MiB',
    events('\n', ...Array<string>(10_000).fill(`data: {"choices":"${'x'.repeat(300)}"}`), ...EVENTS),
    { 'Content-Type': 'text/event-stream' },
  ],
];

describe('a response to an operation with settle: json', () => {
  it.each(BODIES)('costs what it states, whole, with a length: %s', async (_, body, fields = {}) => {
    shared.answer = (response) => {
      response.writeHead(200, { 'Content-Length': Buffer.byteLength(body), ...fields }).end(body);
    };
    await (await shared.gateway.send('POST', '/json')).arrayBuffer();
    expect(await shared.lastCost()).toEqual({ cost: 4_000, settled: 812 });
  });

  it.each(BODIES)(
    'costs what it states, however it is cut, and reaches the client as it is: %s',
    async (_, text, fields = {}) => {
      const body = Buffer.from(text as string);
      const lengths = body.length > 10_000 ? [65_537, 10_007] : [1, 2, 7, 64];
      for (const length of lengths) {
        shared.answer = async (response) => {
          response.writeHead(200, fields);
          await writePieces(response, inPiecesOf(body, length));
          response.end();
        };
        // fetch would decode it.
        const received = await receive(shared.gateway.url);
        expect(received.equals(body)).toBe(true);
        expect(await shared.lastCost()).toEqual({ cost: 4_000, settled: 812 });
      }
    },
  );

  it.each([
    ['missing', '{"usage":{}}', {}],
    ['missing', '', {}],
    ['missing', 'no JSON', {}],
    ['missing', '{"usage":{"total_tokens":1}', {}],
    ['invalid', '{"usage":{"total_tokens":"812"}}', {}],
    ['invalid', '{"usage":{"total_tokens":-1}}', {}],
    ['invalid', '{"usage":{"total_tokens":1e400}}', {}],
    [
      'invalid',
      events('\n', ...EVENTS, 'data: {"usage":{"total_tokens":true}}'),
      { 'Content-Type': 'text/event-stream' },
    ],
    ['missing', events('\n', 'data: [DONE]', 'data'), { 'Content-Type': 'text/event-stream' }],
    ['too-long', padded(1_048_577 + COMPLETION.length), {}],
    [
      'too-long',
      `data: ${COMPLETION}\n\ndata: "${'x'.repeat(1_048_576)}"\n\n`,
      { 'Content-Type': 'text/event-stream' },
    ],
    ['too-long', gzipSync(padded(20_000_000)), { 'Content-Encoding': 'gzip' }],
    [
      'too-long',
      gzipSync('data: {}\n\n'.repeat(2_000_000)),
      { 'Content-Type': 'text/event-stream', 'Content-Encoding': 'gzip' },
    ],
    ['encoding', COMPLETION, { 'Content-Encoding': 'gzip' }],
    ['encoding', COMPLETION, { 'Content-Encoding': 'zstd' }],
    ['encoding', gzipSync(gzipSync(COMPLETION)), { 'Content-Encoding': 'gzip, gzip' }],
    ['encoding', COMPLETION, { 'Content-Encoding': 'constructor' }],
  ])('costs what it has reserved if its cost is %s', async (unsettled, body, fields) => {
    shared.answer = (response) => response.writeHead(200, { ...fields }).end(body);
    const length = Buffer.byteLength(body);
    const before = await countOf(unsettled);
    expect((await receive(shared.gateway.url)).length).toBe(length);
    expect(await shared.lastCost()).toEqual({ cost: 4_000, unsettled });
    expect(await countOf(unsettled)).toBe(before + 1);
  });
});

describe('a response to an operation with settle: header', () => {
  it.each([
    [{ 'X-Cost': '12' }, undefined, { settled: 12 }],
    [{ 'x-cost': ' 1.5 ' }, undefined, { settled: 2 }],
    [{ 'X-Cost': '0' }, undefined, { settled: 0 }],
    [{ Trailer: 'X-Cost' }, { 'X-Cost': '12' }, { settled: 12 }],
    [{ 'X-Cost': '3', Trailer: 'X-Cost' }, { 'X-Cost': '12' }, { settled: 12 }],
    [{ 'X-Cost': '3' }, { 'X-Other': '12' }, { settled: 3 }],
    [{ 'X-Cost': ['1', '2'] }, undefined, { unsettled: 'invalid' }],
    [{ 'X-Cost': '1, 2' }, undefined, { unsettled: 'invalid' }],
    [{ 'X-Cost': '-1' }, undefined, { unsettled: 'invalid' }],
    [{ 'X-Cost': '0x10' }, undefined, { unsettled: 'invalid' }],
    [{ 'X-Cost': 'Infinity' }, undefined, { unsettled: 'invalid' }],
    [{ 'X-Cost': '' }, undefined, { unsettled: 'invalid' }],
    [{}, undefined, { unsettled: 'missing' }],
  ])('%j and trailers %j', async (fields, trailers, cost) => {
    shared.answer = (response) => {
      response.writeHead(200, fields as Record<string, string>).write('x');
      if (trailers !== undefined) response.addTrailers(trailers as unknown as Record<string, string>);
      response.end();
    };
    await (await shared.gateway.send('POST', '/header')).text();
    expect(await shared.lastCost()).toEqual({ cost: 4_000, ...cost });
  });
});

describe('a response to an operation with settle: bytes', () => {
  it.each([
    [0, 0],
    [1, 1],
    [1024, 1],
    [1025, 2],
    [5_000_000, 4883],
  ])('of %i bytes costs %i points', async (length, points) => {
    shared.answer = (response) => response.end(Buffer.alloc(length));
    await (await shared.gateway.send('POST', '/bytes')).arrayBuffer();
    expect(await shared.lastCost()).toEqual({ cost: 4_000, settled: points });
  });

  it('counts the bytes that are sent, not what they are decoded to', async () => {
    const body = gzipSync(Buffer.alloc(1_000_000));
    shared.answer = (response) => response.writeHead(200, { 'Content-Encoding': 'gzip' }).end(body);
    await (await shared.gateway.send('POST', '/bytes')).arrayBuffer();
    expect(await shared.lastCost()).toEqual({ cost: 4_000, settled: Math.ceil(body.length / 1024) });
  });
});

it('an operation that is not settled has the line that it had', async () => {
  shared.answer = (response) => response.writeHead(200, { 'X-Cost': '12' }).end(COMPLETION);
  await (await shared.gateway.send('GET', '/plain')).text();
  expect(await shared.lastCost()).toEqual({ cost: 3 });
});

async function countOf(reason: string): Promise<number> {
  const metrics = await shared.gateway.metrics();
  return Number(
    new RegExp(`^weir_unsettled_total\\{reason="${reason}"\\} (\\d+)$`, 'm').exec(metrics)?.[1] ?? 0,
  );
}

/** The body of the response to POST /json, as it was sent. */
async function receive(url: string): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const sent = request(`${url}/json`, { method: 'POST', headers: { Authorization: 'Bearer service' } });
    sent.on('error', reject).on('response', async (response) => {
      const chunks: Buffer[] = [];
      for await (const chunk of response) chunks.push(chunk as Buffer);
      resolve(Buffer.concat(chunks));
    });
    sent.end();
  });
}

import { once } from 'node:events';
import { type ClientRequest, type IncomingMessage, request } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setTimeout } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startUpstream, type TestUpstream } from '../../fixtures/upstream.ts';
import { startWeir, type WeirProcess } from '../../fixtures/weir-process.ts';

const CHUNK = Buffer.alloc(1 << 18, 'x');
const TRANSFER_BYTES = 200 << 20;
/** What a transfer may add to the process: a few socket buffers, not a part of what goes through them. */
const ALLOWED_BYTES = 80 << 20;

function* chunks(bytes = TRANSFER_BYTES): Generator<Buffer> {
  for (let sent = 0; sent < bytes; sent += CHUNK.length) yield CHUNK;
}

let upstream: TestUpstream;
let weir: WeirProcess;
beforeAll(async () => {
  upstream = await startUpstream(async (incoming, response) => {
    if (incoming.method === 'GET') {
      await pipeline(Readable.from(chunks()), response);
      return;
    }
    response.end(String(await lengthOf(incoming)));
  });
  weir = await startWeir({ upstreamUrl: upstream.url, settings: { log: { level: 'info', access: false } } });
  // First transfers, so that the usual growth of a young process is not counted as the transfer's. The upload is short, so
  // a gateway that kept all later uploads would still be noticed.
  await download();
  await upload({ 'Transfer-Encoding': 'chunked' }, TRANSFER_BYTES / 2);
});
afterAll(async () => {
  await weir.close();
  await upstream.close();
});

async function lengthOf(stream: AsyncIterable<unknown>): Promise<number> {
  let bytes = 0;
  for await (const chunk of stream) bytes += (chunk as Buffer).length;
  return bytes;
}

async function residentBytes(): Promise<number> {
  const text = await (await fetch(`${weir.adminUrl}/metrics`)).text();
  return Number(/^process_resident_memory_bytes (\S+)$/m.exec(text)?.[1]);
}

/** The most memory that the gateway was seen with while `work` ran. */
async function peakDuring(work: Promise<unknown>): Promise<number> {
  const state = { isDone: false };
  void work.finally(() => {
    state.isDone = true;
  });
  let peak = 0;
  while (!state.isDone) {
    peak = Math.max(peak, await residentBytes());
    await setTimeout(20);
  }
  return peak;
}

function send(method: string, headers: Record<string, string> = {}): ClientRequest {
  return request(`${weir.url}/v3/things`, {
    method,
    headers: { Authorization: 'Bearer service', ...headers },
  });
}

async function download(): Promise<number> {
  const outgoing = send('GET').end();
  const [answer] = (await once(outgoing, 'response')) as [IncomingMessage];
  return lengthOf(answer);
}

async function upload(headers: Record<string, string>, bytes = TRANSFER_BYTES): Promise<number> {
  const outgoing = send('POST', headers);
  const [[answer]] = await Promise.all([
    once(outgoing, 'response') as Promise<[IncomingMessage]>,
    pipeline(Readable.from(chunks(bytes)), outgoing),
  ]);
  return Number(Buffer.concat((await answer.toArray()) as Buffer[]));
}

it.each([
  ['down', download],
  ['up, in chunks', () => upload({ 'Transfer-Encoding': 'chunked' })],
  ['up, with its length', () => upload({ 'Content-Length': String(TRANSFER_BYTES) })],
])('200 MB %s take less than 80 MB of memory', async (_, transfer) => {
  const before = await residentBytes();
  const work = transfer();
  const peak = await peakDuring(work);
  expect(await work).toBe(TRANSFER_BYTES);
  expect(peak - before).toBeLessThan(ALLOWED_BYTES);
});

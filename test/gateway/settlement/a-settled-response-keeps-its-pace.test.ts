import { request } from 'node:http';
import { gzipSync } from 'node:zlib';
import { expect, it } from 'vitest';
import { startSettling } from '../../fixtures/settling.ts';

const EVENTS = [
  '{"choices":[{"delta":"Hello"}]}',
  '{"choices":[]}',
  '{"usage":{"total_tokens":812}}',
  '[DONE]',
];

it.each([
  ['events', (text: string) => Buffer.from(text), {}],
  ['encoded events', (text: string) => gzipSync(text), { 'Content-Encoding': 'gzip' }],
])('a client has each part before the upstream sends the next one: %s', async (_, encoded, fields) => {
  const gateway = await startSettling();
  const parts = EVENTS.map((data) => encoded(`data: ${data}\n\n`));
  let [missing, onReceived] = [0, () => {}];
  gateway.answer = async (response) => {
    response.writeHead(200, { 'Content-Type': 'text/event-stream', ...fields });
    for (const part of parts) {
      missing += part.length;
      const isReceived = new Promise<void>((resolve) => {
        onReceived = resolve;
      });
      response.write(part);
      await isReceived;
    }
    response.end();
  };
  const body = await receive(gateway.url, (bytes) => {
    missing -= bytes;
    if (missing === 0) onReceived();
  });
  expect(body.equals(Buffer.concat(parts))).toBe(true);
  expect(await gateway.costOf()).toEqual({ cost: 4_000, settled: 812 });
});

/** The body as it was sent. */
async function receive(url: string, onBytes: (bytes: number) => void): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const sent = request(`${url}/json`, { method: 'POST', headers: { Authorization: 'Bearer service' } });
    sent.on('error', reject).on('response', (response) => {
      const chunks: Buffer[] = [];
      response.on('error', reject).on('end', () => resolve(Buffer.concat(chunks)));
      response.on('data', (chunk: Buffer) => {
        chunks.push(chunk);
        onBytes(chunk.length);
      });
    });
    sent.end();
  });
}

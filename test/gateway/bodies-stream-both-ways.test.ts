import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { type IncomingMessage, request, type ServerResponse } from 'node:http';
import { pipeline, Readable } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import { afterEach, expect, it } from 'vitest';
import { startGateway, type TestGateway } from '../fixtures/gateway.ts';
import { connectRaw } from '../fixtures/raw.ts';
import { startUpstream } from '../fixtures/upstream.ts';

let gateway: TestGateway;
afterEach(() => gateway.close());

it('an upload of any content type arrives to the byte', async () => {
  const upstream = await startUpstream(async (incoming, response) => {
    const digest = createHash('sha256');
    for await (const chunk of incoming) digest.update(chunk as Buffer);
    response.end(digest.digest('hex'));
  });
  gateway = await startGateway({ upstream });
  const body = 'ä"{[,'.repeat(150_000);
  const digest = createHash('sha256').update(body).digest('hex');
  for (const type of [
    'application/json',
    'text/plain',
    'application/x-www-form-urlencoded',
    'no/such; type',
    'garbage',
  ]) {
    const answer = await gateway.send('POST', '/v3/things', { body, headers: { 'Content-Type': type } });
    expect(await answer.text(), type).toBe(digest);
  }
});

it.each([20_000, 70_000, 130_000, 300_000])(
  'an upload of %i bytes that waits for its upstream does not hold up the next request of its connection',
  async (length) => {
    const held: (() => void)[] = [];
    const upstream = await startUpstream(async (incoming, response) => {
      let bytes = 0;
      for await (const chunk of incoming) bytes += (chunk as Buffer).length;
      if (incoming.url === '/v3/held') await new Promise<void>((resolve) => held.push(resolve));
      response.end(`${bytes} bytes`);
    });
    gateway = await startGateway({ upstream, settings: { upstream: { url: upstream.url, connections: 1 } } });
    const first = gateway.send('GET', '/v3/held');
    await expect.poll(() => held.length).toBe(1);
    const client = await connectRaw(gateway.url);
    let received = '';
    client.on('data', (bytes) => {
      received += bytes;
    });
    const head = (method: string, field: string) =>
      `${method} /v3/things HTTP/1.1\r\nHost: weir\r\nAuthorization: Bearer service\r\n${field}\r\n`;
    client.write(`${head('PUT', `Content-Length: ${length}\r\n`)}${'b'.repeat(length)}`);
    await expect.poll(() => gateway.metrics()).toMatch(/^weir_upstream_queued\S* 1$/m);
    held[0]?.();
    await first;
    await expect.poll(() => received).toContain(`${length} bytes`);
    client.write(head('GET', ''));
    await expect.poll(() => received).toMatch(/\b0 bytes/);
    client.destroy();
  },
);

it('a download in small pieces arrives to the byte at a client that stops reading and goes on', async () => {
  const PIECE_BYTES = 4096;
  const body = randomBytes(24 << 20);
  let sentBytes = 0;
  const pieces = async function* () {
    for (; sentBytes < body.length; sentBytes += PIECE_BYTES) {
      yield body.subarray(sentBytes, sentBytes + PIECE_BYTES);
      await setImmediate();
    }
  };
  const upstream = await startUpstream((_incoming, response) => {
    pipeline(Readable.from(pieces(), { highWaterMark: 1 }), response, () => {});
  });
  gateway = await startGateway({ upstream });
  const download = request(`${gateway.url}/v3/things`, { headers: { Authorization: 'Bearer service' } });
  download.end();
  const [answer] = (await once(download, 'response')) as [IncomingMessage];
  answer.pause();
  let before = -1;
  await expect
    .poll(
      () => {
        const isStill = sentBytes === before;
        before = sentBytes;
        return isStill;
      },
      { interval: 200, timeout: 20_000 },
    )
    .toBe(true);
  const digest = createHash('sha256');
  for await (const chunk of answer) digest.update(chunk as Buffer);
  expect(digest.digest('hex')).toBe(createHash('sha256').update(body).digest('hex'));
});

it('both directions flow at once: each chunk is answered before the next is sent', async () => {
  const upstream = await startUpstream((incoming, response) => {
    incoming.pipe(response);
  });
  gateway = await startGateway({ upstream });
  const upload = request(`${gateway.url}/v3/things`, {
    method: 'POST',
    headers: { Authorization: 'Bearer service' },
  });
  upload.write('one');
  const [answer] = await once(upload, 'response');
  expect(String((await once(answer, 'data'))[0])).toBe('one');
  upload.write('two');
  expect(String((await once(answer, 'data'))[0])).toBe('two');
  upload.end();
  await once(answer, 'end');
});

it('a client that reads slowly slows the upstream down', async () => {
  const CHUNK = Buffer.alloc(1 << 20);
  const CHUNKS = 256;
  let sentBytes = 0;
  const chunks = function* () {
    for (let count = 0; count < CHUNKS; count++) {
      sentBytes += CHUNK.length;
      yield CHUNK;
    }
  };
  const upstream = await startUpstream((_incoming, response) => {
    pipeline(Readable.from(chunks(), { highWaterMark: 1 }), response, () => {});
  });
  gateway = await startGateway({ upstream });
  const download = request(`${gateway.url}/v3/things`, { headers: { Authorization: 'Bearer service' } });
  download.end();
  const [answer] = await once(download, 'response');
  answer.pause();
  let before = -1;
  // Nobody reads: what is in flight fills the buffers, then stands still, far below the whole: Linux may buffer 32 MB at each end.
  await expect
    .poll(
      () => {
        const isStill = sentBytes === before;
        before = sentBytes;
        return isStill;
      },
      { interval: 300 },
    )
    .toBe(true);
  expect(sentBytes).toBeLessThan((CHUNKS << 20) / 2);
  let receivedBytes = 0;
  answer.on('data', (chunk: Buffer) => {
    receivedBytes += chunk.length;
  });
  answer.resume();
  await once(answer, 'end');
  expect(receivedBytes).toBe(CHUNKS << 20);
});

it('server-sent events arrive one by one, and their header before the first', async () => {
  let events: ServerResponse | undefined;
  const upstream = await startUpstream((_request, response) => {
    events = response;
    response.writeHead(200, { 'Content-Type': 'text/event-stream' });
    response.flushHeaders();
  });
  gateway = await startGateway({ upstream });
  const listening = request(`${gateway.url}/v3/things`, {
    headers: { Authorization: 'Bearer service' },
  }).end();
  const [answer] = (await once(listening, 'response')) as [IncomingMessage];
  expect(answer.headers['content-type']).toBe('text/event-stream');
  for (const event of ['data: one\n\n', 'data: two\n\n', 'data: three\n\n']) {
    events?.write(event);
    expect(String((await once(answer, 'data'))[0])).toBe(event);
  }
  listening.destroy();
  if (events !== undefined && !events.closed) await once(events, 'close');
});

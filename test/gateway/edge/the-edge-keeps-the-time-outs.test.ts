import { clearInterval, setInterval } from 'node:timers';
import { setTimeout } from 'node:timers/promises';
import { afterEach, expect, it } from 'vitest';
import { startGateway, type TestGateway } from '../../fixtures/gateway.ts';
import { connectRaw, untilClosed } from '../../fixtures/raw.ts';
import { startUpstream } from '../../fixtures/upstream.ts';

const HEAD = 'Host: weir\r\nAuthorization: Bearer service\r\n';
const GET = `GET /v3/things HTTP/1.1\r\n${HEAD}\r\n`;
const post = (bytes: number) => `POST /v3/things HTTP/1.1\r\n${HEAD}Content-Length: ${bytes}\r\n\r\n`;
const POST = post(5);
const LONG = 100_000;
/** As much of a long body as is read before its request is sent on. */
const BEGINNING = 'd'.repeat(65_536);

let gateway: TestGateway;
/** For each request that the upstream no longer reads, whether it had its end. */
let read: boolean[];
afterEach(() => gateway.close());

async function start(listen: Readonly<Record<string, unknown>>): Promise<void> {
  read = [];
  const upstream = await startUpstream((request, response) => {
    request.on('close', () => read.push(request.complete));
    const chunks: Buffer[] = [];
    request.on('data', (chunk) => chunks.push(chunk)).on('end', () => response.end(Buffer.concat(chunks)));
  });
  gateway = await startGateway({
    upstream,
    settings: { listen: { host: '127.0.0.1', port: 0, ...listen } },
  });
}

it('a connection without a request is answered with 408 after headersTimeoutMs', async () => {
  await start({ headersTimeoutMs: 300 });
  const { statuses } = await untilClosed(await connectRaw(gateway.url));
  expect(statuses).toEqual([408]);
});

it('a connection is closed when it has been idle for keepAliveTimeoutMs, and not before', async () => {
  await start({ keepAliveTimeoutMs: 1_000 });
  const socket = await connectRaw(gateway.url);
  const answer = untilClosed(socket);
  for (let count = 0; count < 4; count++) {
    socket.write(GET);
    // Together longer than the time-out, which begins anew behind each response.
    await setTimeout(300);
  }
  expect((await answer).statuses).toEqual([200, 200, 200, 200]);
});

it('empty lines behind a response are no request, and a request that follows them is served', async () => {
  await start({ headersTimeoutMs: 300 });
  const socket = await connectRaw(gateway.url);
  const answer = untilClosed(socket);
  socket.write(`${GET}\r\n`);
  await setTimeout(300);
  socket.write('\n');
  await setTimeout(300);
  socket.write(GET);
  await setTimeout(300);
  socket.write(`\r\n${GET.replace('Host', 'Connection: close\r\nHost')}`);
  expect((await answer).statuses).toEqual([200, 200, 200]);
  expect(await gateway.metrics()).toContain('weir_requests_read_total{reader="edge"} 2');
});

it('more than 1 KiB of empty lines behind a response closes the connection', async () => {
  await start({});
  const socket = await connectRaw(gateway.url);
  const answer = untilClosed(socket);
  socket.write(GET);
  for (let count = 0; count < 11; count++) {
    await setTimeout(20);
    socket.write('\r\n'.repeat(50));
  }
  expect((await answer).statuses).toEqual([200]);
});

it('a body that comes late is forwarded whole', async () => {
  await start({});
  const socket = await connectRaw(gateway.url);
  const answer = untilClosed(socket);
  socket.write(POST);
  await setTimeout(200);
  socket.write('la');
  await setTimeout(200);
  socket.write('ter');
  socket.write(GET.replace('Host', 'Connection: close\r\nHost'));
  const { statuses, text } = await answer;
  expect(statuses).toEqual([200, 200]);
  expect(text).toContain('later');
});

it('a body that does not come is answered with 408 after bodyTimeoutMs', async () => {
  await start({ bodyTimeoutMs: 200 });
  const socket = await connectRaw(gateway.url);
  const answer = untilClosed(socket);
  socket.write(`${POST}la`);
  expect((await answer).statuses).toEqual([408]);
});

it('a client that ends within a body is answered with 400, and nothing is forwarded', async () => {
  await start({});
  const socket = await connectRaw(gateway.url);
  const answer = untilClosed(socket);
  socket.end(`${POST}la`);
  const { statuses, text } = await answer;
  expect(statuses).toEqual([400]);
  expect(text).toMatch(/^Connection: close\r$/m);
  expect(gateway.upstream.seen).toEqual([]);
});

it.each([
  ['a short body', 5],
  ['a long body', LONG],
])('%s that comes drop by drop is answered with 408 after requestTimeoutMs', async (_, bytes) => {
  await start({ requestTimeoutMs: 1_500, bodyTimeoutMs: 1_000, headersTimeoutMs: 1_000 });
  const socket = await connectRaw(gateway.url);
  const answer = untilClosed(socket);
  socket.write(post(bytes));
  const drops = setInterval(() => socket.write('d'), 500);
  expect((await answer).statuses).toEqual([408]);
  clearInterval(drops);
});

it.each([
  ['with a length', `Content-Length: ${LONG}\r\n\r\n${BEGINNING}`, 'd'],
  ['in chunks', 'Transfer-Encoding: chunked\r\n\r\n', '1\r\nd\r\n'],
])(
  'a body %s that comes drop by drop ends after requestTimeoutMs, although its answer has begun',
  async (_, begun, drop) => {
    let isOpen = true;
    const upstream = await startUpstream((request, response) => {
      request.resume();
      response.once('close', () => {
        isOpen = false;
      });
      response.write('begun');
    });
    const listen = { requestTimeoutMs: 1_500, bodyTimeoutMs: 1_000, headersTimeoutMs: 1_000 };
    gateway = await startGateway({
      upstream,
      settings: { listen: { host: '127.0.0.1', port: 0, ...listen } },
    });
    const socket = await connectRaw(gateway.url);
    const answer = untilClosed(socket);
    socket.write(`POST /v3/things HTTP/1.1\r\n${HEAD}${begun}`);
    const drops = setInterval(() => socket.write(drop), 500);
    expect((await answer).text).toContain('begun');
    clearInterval(drops);
    await expect.poll(() => isOpen).toBe(false);
  },
);

it('a long body that does not come to its end is answered with 408 after bodyTimeoutMs', async () => {
  await start({ bodyTimeoutMs: 200 });
  const socket = await connectRaw(gateway.url);
  const answer = untilClosed(socket);
  socket.write(post(LONG) + 'l'.repeat(LONG - 1));
  expect((await answer).statuses).toEqual([408]);
});

it('a client that ends within a long body is answered with 400', async () => {
  await start({});
  const socket = await connectRaw(gateway.url);
  const answer = untilClosed(socket);
  socket.end(post(LONG) + 'l'.repeat(LONG - 1));
  const { statuses, text } = await answer;
  expect(statuses).toEqual([400]);
  expect(text).toMatch(/^Connection: close\r$/m);
});

it('a client that goes within a long body ends the request to the upstream', async () => {
  await start({});
  const socket = await connectRaw(gateway.url);
  socket.write(post(LONG) + 'l'.repeat(LONG - 1));
  await expect.poll(() => gateway.upstream.seen.length).toBe(1);
  socket.destroy();
  await expect.poll(() => read).toEqual([false]);
});

it('a body longer than listen.maxBodyBytes is answered with 413', async () => {
  await start({ maxBodyBytes: LONG - 1 });
  const socket = await connectRaw(gateway.url);
  const answer = untilClosed(socket);
  socket.write(post(LONG) + 'l'.repeat(LONG));
  expect((await answer).statuses).toEqual([413]);
});

it('the rest of a refused body is dropped, and the connection goes on', async () => {
  await start({});
  const socket = await connectRaw(gateway.url);
  const answer = untilClosed(socket);
  const refused = post(60_000).replace('Bearer service', 'Bearer nobody');
  socket.write(refused + 'l'.repeat(20_000));
  await setTimeout(300);
  socket.write('l'.repeat(40_000) + GET.replace('Host', 'Connection: close\r\nHost'));
  expect((await answer).statuses).toEqual([401, 200]);
});

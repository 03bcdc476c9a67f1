import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { startGateway, type TestGateway } from '../../fixtures/gateway.ts';
import { connectRaw, untilClosed } from '../../fixtures/raw.ts';
import { startRawServer } from '../../fixtures/raw-server.ts';
import { startUpstream } from '../../fixtures/upstream.ts';

const HEAD = 'Host: weir\r\nAuthorization: Bearer service\r\n';

let gateway: TestGateway;
afterEach(() => gateway.close());

/** A gateway in front of an upstream that answers when the test says so. */
async function startHeld(
  listen: Readonly<Record<string, unknown>> = {},
  limits: Readonly<Record<string, unknown>> = {},
) {
  const held: ServerResponse[] = [];
  const upstream = await startUpstream((request, response) => {
    request.resume().once('end', () => held.push(response));
  });
  gateway = await startGateway({
    upstream,
    settings: {
      listen: { host: '127.0.0.1', port: 0, ...listen },
      upstream: { url: upstream.url, ...limits },
    },
  });
  return held;
}

const POST = `POST /v3/things HTTP/1.1\r\n${HEAD}Content-Length: 3\r\n\r\nabc`;
const GET = `GET /v3/things HTTP/1.1\r\n${HEAD}\r\n`;

describe('a request that was executed gets its response, after which the connection is closed, when what follows', () => {
  it.each([
    ['is one byte too many', POST, 'd'],
    ['is no request', GET, 'nonsense\r\n\r\n'],
    ['has a header that is too long', GET, `GET /v3/things HTTP/1.1\r\nX-A: ${'a'.repeat(20_000)}\r\n\r\n`],
    ['has two lengths', GET, `POST / HTTP/1.1\r\n${HEAD}Content-Length: 1\r\nContent-Length: 2\r\n\r\nab`],
    ['is HTTP/2', GET, 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
  ])('%s', async (_, request, rest) => {
    const held = await startHeld();
    for (const writes of [[request + rest], [request, rest]]) {
      const socket = await connectRaw(gateway.url);
      const answer = untilClosed(socket);
      for (const bytes of writes) {
        socket.write(bytes);
        await expect.poll(() => held.length, { interval: 5 }).toBe(1);
      }
      held.pop()?.end('executed');
      const { statuses, text } = await answer;
      expect(statuses, text).toEqual([200]);
      expect(text).toContain('executed');
    }
  });

  it('comes while the answer is under way', async () => {
    const held = await startHeld();
    const socket = await connectRaw(gateway.url);
    const answer = untilClosed(socket);
    socket.write(POST);
    await expect.poll(() => held.length).toBe(1);
    held[0]?.write('begun, ');
    await new Promise((resolve) => socket.once('data', resolve));
    socket.write('nonsense\r\n\r\n');
    socket.write('more nonsense\r\n\r\n');
    await gateway.send('GET', '/v3/none', { token: 'nobody' });
    held[0]?.end('ended');
    const { statuses, text } = await answer;
    expect(statuses).toEqual([200]);
    expect(text).toContain('ended');
  });
});

it('the time for a request that was sent ahead begins when the earlier response has been sent', async () => {
  const held = await startHeld({ headersTimeoutMs: 1_000 });
  const socket = await connectRaw(gateway.url);
  const answer = untilClosed(socket);
  let isOver = false;
  void answer.then(() => {
    isOver = true;
  });
  socket.write(`${GET}GET /v3/thi`);
  await expect.poll(() => held.length).toBe(1);
  // A second connection whose header is as late has been answered: so the first was looked at, too.
  const late = await connectRaw(gateway.url);
  const lateAnswer = untilClosed(late);
  late.write('GET /v3/thi');
  expect((await lateAnswer).statuses).toEqual([408]);
  expect(isOver).toBe(false);
  held.pop()?.end('executed');
  expect((await answer).statuses).toEqual([200, 408]);
});

it('what follows the broken bytes is not run', async () => {
  const held = await startHeld();
  const socket = await connectRaw(gateway.url);
  const answer = untilClosed(socket);
  socket.write(`${GET}nonsense\r\n\r\n${GET}`);
  await expect.poll(() => held.length).toBe(1);
  held.pop()?.end();
  expect((await answer).statuses).toEqual([200]);
  expect(gateway.upstream.seen).toHaveLength(1);
});

describe('a body that breaks off', () => {
  it.each([
    ['with an invalid chunk', 'nonsense', (socket: Socket) => socket],
    ['with the end of the connection', '5\r\nhel', (socket: Socket) => socket.end()],
  ])('%s gives its own request a 400 with its charge', async (_, rest, finish) => {
    await startHeld();
    const socket = await connectRaw(gateway.url);
    const answer = untilClosed(socket);
    socket.write(`POST /v3/things HTTP/1.1\r\n${HEAD}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n`);
    await expect.poll(() => gateway.upstream.seen.length, { interval: 5 }).toBe(1);
    socket.write(rest);
    finish(socket);
    const { statuses, text } = await answer;
    expect(statuses, text).toEqual([400]);
    expect(text).toContain('RateLimit: "account-write";r=19');
  });

  it('with the end of the connection, behind requests that wait, gives a 400 in its turn', async () => {
    const held = await startHeld();
    const socket = await connectRaw(gateway.url);
    const answer = untilClosed(socket);
    // The second one is not plain: from there on, Node's server reads the connection.
    for (const bytes of [GET, GET.replace('Host', 'TE: trailers\r\nHost'), POST.slice(0, -1)]) {
      socket.write(bytes);
      await gateway.send('GET', '/v3/none', { token: 'nobody' });
    }
    socket.end();
    await gateway.send('GET', '/v3/none', { token: 'nobody' });
    for (const _ of ['first', 'second']) {
      await expect.poll(() => held.length, { interval: 5 }).toBe(1);
      held.pop()?.end();
    }
    const { statuses, text } = await answer;
    expect(statuses, text).toEqual([200, 200, 400]);
  });

  it('while its request waits for a free connection gives a 400 as well', async () => {
    const held = await startHeld({}, { connections: 1 });
    const first = gateway.send('GET', '/v3/things');
    await expect.poll(() => held.length, { interval: 5 }).toBe(1);
    const socket = await connectRaw(gateway.url);
    const answer = untilClosed(socket);
    socket.write(`POST /v3/things HTTP/1.1\r\n${HEAD}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n`);
    // A request that came later has been answered: the first waits.
    await gateway.send('GET', '/v3/none', { token: 'nobody' });
    socket.write('nonsense');
    const { statuses, text } = await answer;
    expect(statuses, text).toEqual([400]);
    expect(text).toContain('RateLimit: "account-write";r=19');
    held.pop()?.end();
    expect((await first).status).toBe(200);
  });

  it('while the connection to the upstream is being opened gives a 400 as well', async () => {
    // It accepts, and says nothing: the TLS handshake does not end.
    const silent = await startRawServer(() => {});
    gateway = await startGateway({ settings: { upstream: { url: silent.url.replace('http:', 'https:') } } });
    const socket = await connectRaw(gateway.url);
    const answer = untilClosed(socket);
    socket.write(`POST /v3/things HTTP/1.1\r\n${HEAD}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n`);
    await expect.poll(() => silent.connectionCount, { interval: 5 }).toBe(1);
    socket.write('nonsense');
    const { statuses, text } = await answer;
    expect(statuses, text).toEqual([400]);
    await silent.close();
  });

  it('with silence gives a 408, and the upstream is let go', async () => {
    let gone = 0;
    const upstream = await startUpstream((request) => {
      request.resume().once('close', () => gone++);
    });
    gateway = await startGateway({
      upstream,
      settings: { listen: { host: '127.0.0.1', port: 0, bodyTimeoutMs: 100 } },
    });
    const socket = await connectRaw(gateway.url);
    const answer = untilClosed(socket);
    socket.write(`POST /v3/things HTTP/1.1\r\n${HEAD}Content-Length: 100000\r\n\r\n${'x'.repeat(65_536)}`);
    const { statuses, text } = await answer;
    expect(statuses, text).toEqual([408]);
    expect(text).toMatch(/^Connection: close\r$/m);
    await expect.poll(() => gone).toBe(1);
  });
});

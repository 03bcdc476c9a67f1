import { once } from 'node:events';
import type { Socket } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Exchange } from '../../../../src/http/exchange.ts';
import { FieldLines } from '../../../../src/http/message/head/field-lines.ts';
import { NodeExchange, turnOf } from '../../../../src/http/server/node/node-exchange.ts';
import { closeWithin, createServer, type ListenSettings } from '../../../../src/http/server/server.ts';
import { connectRaw, untilClosed } from '../../../fixtures/raw.ts';
import { LIMITS } from '../../../fixtures/read-connection.ts';

/** Longer than a test may take. */
const GRACE_MS = 3_600_000;
/** More than the system takes for a client that does not read. */
const LONG_BYTES = 16 << 20;

const GET = 'GET / HTTP/1.1\r\nHost: weir\r\n\r\n';

/** A server without a gateway behind it. */
async function start(
  respond: (exchange: Exchange) => void,
  reader: 'edge' | 'node',
  limits: Partial<ListenSettings> = {},
) {
  const server = createServer({ ...LIMITS, ...limits }, { baseUrl: 'http://weir', lines: '' });
  const { app, connections } = server;
  app.all('/', (request, reply) => {
    reply.hijack();
    respond(new NodeExchange(turnOf(request.raw)));
  });
  if (reader === 'edge') connections.onExchange = respond;
  const url = await app.listen({ host: '127.0.0.1', port: 0 });
  onTestFinished(() => closeWithin(server, 0));
  return { ...server, url, close: () => closeWithin(server, GRACE_MS) };
}

/** Both ends of a new connection. */
async function open({ url, connections }: Awaited<ReturnType<typeof start>>) {
  const accepted = once(connections.server, 'connection') as Promise<[Socket]>;
  const client = await connectRaw(url);
  client.on('error', () => {});
  onTestFinished(() => void client.destroy());
  const [socket] = await accepted;
  return { client, socket };
}

function end(exchange: Exchange, length: number): void {
  exchange.dropBody();
  exchange.begin(200, FieldLines.of(['Content-Length', `${length}`]));
  exchange.endWith({ text: 'x'.repeat(length), encoding: 'latin1' });
}

describe('a server that closes', () => {
  it.each([
    ['edge', GET],
    ['node', GET.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n')],
    ['node', GET.replace('1.1', '1.0')],
    [
      'node',
      GET.replace('GET', 'POST').replace('\r\n\r\n', '\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n'),
    ],
  ] as const)('sends the rest of a response to a client that reads late: %s, %j', async (reader, request) => {
    let isResponding = false;
    const server = await start((exchange) => {
      end(exchange, LONG_BYTES);
      isResponding = true;
    }, reader);
    const { client } = await open(server);
    client.write(request);
    await expect.poll(() => isResponding).toBe(true);
    const closed = server.close();
    while (server.connections.server.listening) await setImmediate();
    const { text } = await untilClosed(client);
    expect(text.length - text.indexOf('\r\n\r\n') - 4).toBe(LONG_BYTES);
    await closed;
  });

  it.each(['edge', 'node'] as const)(
    'leaves a client the time to read its last response: %s',
    async (reader) => {
      const server = await start((exchange) => {
        exchange.makeLast();
        end(exchange, 5);
      }, reader);
      const { client, socket } = await open(server);
      // So that the server waits for its end, for a second at most.
      client.allowHalfOpen = true;
      client.resume().write(GET);
      await once(client, 'end');
      server.connections.closeIdle();
      expect(socket.destroyed).toBe(false);
    },
  );

  it.each(['edge', 'node'] as const)('does not wait for clients that send nothing: %s', async (reader) => {
    const server = await start((exchange) => end(exchange, 5), reader, { keepAliveTimeoutMs: 400 });
    const { client: silent } = await open(server);
    const { client: empty } = await open(server);
    empty.write('\r\n');
    const answers = [untilClosed(silent), untilClosed(empty)];
    await server.close();
    for (const answer of answers) expect((await answer).text).toBe('');
  });

  it.each(['edge', 'node'] as const)('still serves a client that has just connected: %s', async (reader) => {
    const server = await start((exchange) => end(exchange, 5), reader);
    const { client, socket } = await open(server);
    server.connections.closeIdle();
    expect(socket.destroyed).toBe(false);
    client.write(GET);
    const closed = server.close();
    expect((await untilClosed(client)).statuses).toEqual([200]);
    await closed;
  });
});

describe('the rest of a short upload', () => {
  const head = 'POST / HTTP/1.1\r\nHost: weir\r\nContent-Length: 40000\r\n';
  const refuse = (exchange: Exchange) =>
    exchange.answer(401, FieldLines.of(['Content-Length', '2']), { text: 'no', encoding: 'latin1' });
  const refuseLast = (exchange: Exchange) => {
    exchange.endKeepAlive();
    refuse(exchange);
  };
  /** For HTTP/1.0, a response without a length ends with its connection. */
  const answerEarly = (exchange: Exchange) => {
    exchange.dropBody();
    exchange.begin(409, new FieldLines());
    exchange.write(Buffer.from('early'));
    exchange.end();
  };

  it.each([
    ['edge', 'while the server drains', `${head}\r\n`, refuseLast],
    ['node', 'while the server drains', `${head}\r\n`, refuseLast],
    ['node', 'with Connection: close', `${head}Connection: close\r\n\r\n`, refuse],
    ['node', 'of HTTP/1.0', `${head.replace('1.1', '1.0')}\r\n`, refuse],
    [
      'node',
      'of HTTP/1.0 that is answered early',
      `${head.replace('1.1', '1.0')}Connection: keep-alive\r\n\r\n`,
      answerEarly,
    ],
  ] as const)('is read behind the last response: %s, %s', async (reader, _, request, respond) => {
    const server = await start(respond, reader);
    const { client, socket } = await open(server);
    // So that a reset, which could overtake the response, would show.
    client.allowHalfOpen = true;
    const answer = untilClosed(client);
    client.write(`${request}${'x'.repeat(20_000)}`);
    await once(client, 'end');
    expect(socket.destroyed).toBe(false);
    client.end('x'.repeat(20_000));
    await once(socket, 'close');
    expect(socket.bytesRead).toBe(request.length + 40_000);
    expect((await answer).statuses).toHaveLength(1);
  });
});

it.each(['edge', 'node'] as const)(
  'a last response in front of a request that was sent early is not reset: %s',
  async (reader) => {
    const asked: Exchange[] = [];
    const server = await start((exchange) => void asked.push(exchange), reader);
    const { client, socket } = await open(server);
    client.allowHalfOpen = true;
    const answer = untilClosed(client);
    client.write(GET + GET);
    await expect.poll(() => asked.length).toBe(1);
    asked[0]?.endKeepAlive();
    if (asked[0] !== undefined) end(asked[0], 5);
    await once(client, 'end');
    expect(socket.destroyed).toBe(false);
    client.end();
    expect((await answer).statuses).toEqual([200]);
    expect(asked).toHaveLength(1);
  },
);

it.each(['edge', 'node'] as const)(
  'a request behind an upload that took too long is not served: %s',
  async (reader) => {
    let served = 0;
    const server = await start(
      (exchange) => {
        served++;
        exchange.answer(401, FieldLines.of(['Content-Length', '0']), { text: '', encoding: 'latin1' });
      },
      reader,
      { requestTimeoutMs: 400 },
    );
    const { client, socket } = await open(server);
    client.allowHalfOpen = true;
    const answer = untilClosed(client);
    client.write(
      `${GET.replace('GET', 'POST').replace('\r\n\r\n', '\r\nContent-Length: 40000\r\n\r\n')}half`,
    );
    await once(client, 'end');
    client.write(`${'x'.repeat(39_996)}${GET}`);
    await once(socket, 'close');
    expect(served).toBe(1);
    client.destroy();
    expect((await answer).statuses).toEqual([401]);
  },
);

import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import {
  answerHalfClosed,
  onLastResponseSent,
  sentWhileWaiting,
} from '../../../../src/http/server/node/internals.ts';

const GET = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n';

const ends: (() => void)[] = [];

afterEach(() => {
  for (const end of ends.splice(0)) end();
});

/** A client's socket, and the server behind it. */
async function serve(onRequest: (request: IncomingMessage, response: ServerResponse) => void) {
  const server = createServer(onRequest);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
  ends.push(
    () => client.destroy(),
    () => server.closeAllConnections(),
    () => server.close(),
  );
  return { server, client };
}

/** The first request that the server is given for what the client writes. */
async function requested(written: string) {
  const { client, server } = await serve(() => undefined);
  client.write(written);
  const [request, response] = (await once(server, 'request')) as [IncomingMessage, ServerResponse];
  return { client, request, response };
}

async function textOf(client: Socket): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of client) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}

describe(`Node ${process.versions.node}`, () => {
  it('lets the gateway close a connection after its last response', async () => {
    const { client, request, response } = await requested(GET);
    const closed = new Promise<void>((resolve) => onLastResponseSent(request.socket, resolve));
    response.setHeader('Connection', 'close');
    response.end('bye');
    await closed;
    expect(request.socket.destroyed).toBe(false);
    request.socket.end();
    expect(await textOf(client)).toContain('bye');
  });

  it('counts what the system has taken for a client that does not read', async () => {
    const { request, response } = await requested(GET);
    expect(sentWhileWaiting(request.socket)).toBeUndefined();
    response.write(Buffer.alloc(64 * 1024 * 1024));
    expect(sentWhileWaiting(request.socket)).toBeTypeOf('number');
  });

  it('answers a client that has closed its sending side', async () => {
    const { client, server } = await serve((_request, response) => {
      setImmediate(() => setImmediate(() => response.end('late')));
    });
    answerHalfClosed(server);
    client.end(GET);
    expect(await textOf(client)).toContain('late');
  });
});

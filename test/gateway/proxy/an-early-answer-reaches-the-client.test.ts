import { once } from 'node:events';
import type { Socket } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { PLENTY } from '../../fixtures/configuration.ts';
import { startGateway, type TestGateway } from '../../fixtures/gateway.ts';
import { connectRaw, untilClosed } from '../../fixtures/raw.ts';
import { startTcpUpstream } from '../../fixtures/tcp-upstream.ts';

const HEAD = 'Host: weir\r\nAuthorization: Bearer service\r\n';
const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';
const REFUSAL = '{"the upstream":"takes no more"}';
const PIECE = Buffer.alloc(65_536, 'x');

let gateway: TestGateway;

const asChunk = (bytes: Buffer) =>
  Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from('\r\n')]);
const asIs = (bytes: Buffer) => bytes;

const FRAMINGS: readonly [string, string, (bytes: Buffer) => Buffer][] = [
  ['a length', 'Content-Length: 10000000', asIs],
  ['chunks', 'Transfer-Encoding: chunked', asChunk],
  ['Expect: 100-continue', 'Expect: 100-continue\r\nContent-Length: 10000000', asIs],
];

const ENDS: readonly [string, (socket: Socket) => void][] = [
  ['closes with the body unread', (socket) => socket.destroy()],
  ['resets the connection', (socket) => socket.resetAndDestroy()],
  ['ends its side and reads on', (socket) => socket.end()],
  ['keeps the connection and reads nothing', (socket) => socket.pause()],
];

describe('the answer of an upstream that does not wait for the body reaches the client', () => {
  const cases = FRAMINGS.flatMap(([framing, field, frame]) =>
    ENDS.flatMap(([end, finish]) =>
      [413, 400].map((status) => ({ framing, field, frame, end, finish, status })),
    ),
  );

  /** What the upstream does once it has the head of the request. */
  let respond: (socket: Socket) => void;
  beforeAll(async () => {
    const upstream = await startTcpUpstream((socket) => socket.once('data', () => respond(socket)));
    gateway = await startGateway({ upstream, limits: PLENTY });
  });
  afterAll(() => gateway.close());

  it.each(cases)('$status, then it $end: $framing', async ({ field, frame, finish, status }) => {
    const client = await connectRaw(gateway.url);
    respond = (socket) => {
      // The gateway reads the client first, and fails to pass this on.
      client.write(frame(PIECE));
      const fields = `Content-Type: application/json\r\nContent-Length: ${REFUSAL.length}`;
      socket.write(`HTTP/1.1 ${status} No\r\n${fields}\r\n\r\n${REFUSAL}`, () => finish(socket));
    };
    const answer = untilClosed(client);
    client.write(`POST /v3/things HTTP/1.1\r\n${HEAD}${field}\r\n\r\n`);
    client.write(frame(PIECE));
    const { text, statuses } = await answer;
    expect(statuses.filter((one) => one !== 100)).toEqual([status]);
    expect(text).toMatch(/^Connection: close\r$/m);
    expect(text.slice(text.lastIndexOf('\r\n\r\n') + 4)).toBe(REFUSAL);
  });
});

describe('an upload on a connection that the upstream resets', () => {
  afterEach(() => gateway.close());

  it.each(['POST', 'PUT', 'PATCH'])(
    'is sent again if nothing was sent, and charged once: %s',
    async (method) => {
      const seen: Buffer[][] = [];
      let first: Socket | undefined;
      const upstream = await startTcpUpstream((socket, count) => {
        first ??= socket;
        const received: Buffer[] = [];
        seen.push(received);
        socket.on('data', (bytes) => {
          received.push(bytes);
          if (count === 1 || bytes.toString().endsWith('body')) socket.write(OK);
        });
      });
      gateway = await startGateway({ upstream });
      await (await gateway.send('GET', '/v3/things')).text();

      const client = await connectRaw(gateway.url);
      const fields = 'Expect: 100-continue\r\nConnection: close\r\nContent-Length: 4';
      client.write(`${method} /v3/things HTTP/1.1\r\n${HEAD}${fields}\r\n\r\n`);
      // The 100 comes once the request has a connection, one turn of the event loop before its head leaves.
      await once(client, 'data');
      first?.resetAndDestroy();
      const answer = untilClosed(client);
      client.write('body');
      const { text, statuses } = await answer;

      expect(statuses).toEqual([200]);
      expect(text.endsWith('ok'), text).toBe(true);
      expect(text).toMatch(/"account-write";r=19;/);
      const requests = seen.map((received) => Buffer.concat(received).toString());
      expect(requests).toEqual([
        expect.stringMatching(/^GET /),
        expect.stringMatching(RegExp(`^${method} [^]*body$`)),
      ]);
    },
  );
});

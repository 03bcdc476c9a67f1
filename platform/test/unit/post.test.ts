import type { Socket } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { type RawServer, startRawServer } from '../../../test/fixtures/raw-server.ts';
import { MAX_IDLE, postWebhook } from '../../src/deliveries/post.ts';

const SECRET = `whsec_${Buffer.alloc(32, 'a').toString('base64')}`;
/** Longer than any test: a result must not depend on it. */
const TIMEOUT_MS = 300_000;

/** What an endpoint does with a request, and the result that the delivery log shows. */
const ENDPOINTS: readonly [
  name: string,
  answer: string | undefined,
  result: {
    readonly responseStatus: number | null;
    readonly responseBody?: string;
    readonly error?: unknown;
  },
][] = [
  [
    'switches to another protocol',
    'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n',
    { responseStatus: 101, error: 'The endpoint answered 101.' },
  ],
  [
    'answers 101 without another protocol',
    'HTTP/1.1 101 Switching Protocols\r\n\r\n',
    { responseStatus: 101, error: 'The endpoint answered 101.' },
  ],
  ['closes the connection', undefined, { responseStatus: null, error: expect.any(String) }],
  ['does not speak HTTP', 'hello\r\n\r\n', { responseStatus: null, error: expect.any(String) }],
  [
    'sends only an interim response',
    'HTTP/1.1 103 Early Hints\r\n\r\n',
    { responseStatus: null, error: expect.any(String) },
  ],
  [
    'names another protocol in its answer',
    'HTTP/1.1 200 OK\r\nUpgrade: h2c\r\nConnection: Upgrade\r\nContent-Length: 0\r\n\r\n',
    { responseStatus: 200, error: null },
  ],
  [
    'cuts its body off',
    'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc',
    { responseStatus: 200, error: null },
  ],
  [
    'sends more than the length that it states',
    'HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcd',
    { responseStatus: 200, responseBody: 'abc', error: null },
  ],
  [
    'sends a body that is not chunked although it says so',
    'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz',
    { responseStatus: 200, error: null },
  ],
];

it.each(ENDPOINTS)('an attempt ends when the endpoint %s', async (_name, answer, result) => {
  const endpoint = await startRawServer((socket) => {
    socket.once('data', () => {
      if (answer === undefined) socket.destroy();
      else socket.end(answer);
    });
  });
  onTestFinished(() => endpoint.close());
  const message = { url: endpoint.url, secrets: [SECRET], id: 'evt_1', payload: '{}' };
  expect(await postWebhook(message, TIMEOUT_MS, true)).toMatchObject(result);
});

it('idle connections to all endpoints together are bounded, and the ones that were used last are kept', async () => {
  const atOnce = 200;
  const start = () => startRawServer(answeringTogether(atOnce));
  const [earlier, later] = [await start(), await start()];
  onTestFinished(async () => {
    await earlier.close();
    await later.close();
  });
  const postAll = async ({ url }: RawServer) => {
    const message = { url, secrets: [SECRET], id: 'evt_1', payload: '{}' };
    await Promise.all(Array.from({ length: atOnce }, () => postWebhook(message, TIMEOUT_MS, true)));
  };
  for (const server of [earlier, later, later, earlier]) await postAll(server);
  const closed = 2 * atOnce - MAX_IDLE;
  expect([earlier.connectionCount, later.connectionCount]).toEqual([atOnce + closed, atOnce]);
});

/** Answers once so many requests wait, so that each needs a connection. */
function answeringTogether(atOnce: number): (socket: Socket) => void {
  const waiting: Socket[] = [];
  return (socket) => {
    socket.on('data', (chunk) => {
      // A body may come after its head.
      if (!chunk.includes('{}')) return;
      waiting.push(socket);
      if (waiting.length < atOnce) return;
      for (const one of waiting.splice(0)) one.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n');
    });
  };
}

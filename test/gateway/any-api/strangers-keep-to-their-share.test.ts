import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { apiFolder, openapi } from '../../fixtures/api-files.ts';
import { PLENTY } from '../../fixtures/configuration.ts';
import { startGateway } from '../../fixtures/gateway.ts';
import { connectRaw } from '../../fixtures/raw.ts';
import { startUpstream } from '../../fixtures/upstream.ts';

const validated = (cost: number) =>
  JSON.stringify({
    security: [],
    'x-weir': { cost, validate: 'body' },
    requestBody: { content: { 'application/json': { schema: { type: 'object' } } } },
  });
const PATHS = `/public: { post: ${validated(1)} }\n/free: { post: ${validated(0)} }\n/closed: { get: {} }`;

const CLIENTS = 8;
/** Of the four connections: two for public operations, one for what is not charged. One public request may wait. */
const SHARES = { connections: 4, maxWaiting: 2, publicPercent: 50, unauthenticatedPercent: 25 };

/** A request whose body the gateway has begun to wait for. */
async function begin(url: string, path: string): Promise<Socket> {
  const socket = await connectRaw(url);
  onTestFinished(() => void socket.destroy());
  socket.write(
    `POST ${path} HTTP/1.1\r\nHost: api.example.com\r\nContent-Type: application/json\r\nContent-Length: 2\r\n` +
      'Expect: 100-continue\r\n\r\n',
  );
  const [interim] = await once(socket, 'data');
  expect(String(interim)).toContain('HTTP/1.1 100 ');
  return socket;
}

it.each([
  ['public', 2, 1],
  ['free', 1, 0],
])(
  'requests for a %s operation that arrive together use no more than their share',
  async (name, share, waiting) => {
    const held: ServerResponse[] = [];
    const upstream = await startUpstream((request, response) => {
      if (request.method === 'POST') held.push(response);
      else response.end();
    });
    const folder = await apiFolder({ 'openapi.yaml': openapi(PATHS) });
    onTestFinished(() => folder.remove());
    const gateway = await startGateway({
      upstream,
      limits: PLENTY,
      settings: {
        operations: { openapi: join(folder.path, 'openapi.yaml') },
        upstream: { url: upstream.url, ...SHARES },
      },
    });
    onTestFinished(() => gateway.close());

    const clients = await Promise.all(Array.from({ length: CLIENTS }, () => begin(gateway.url, `/${name}`)));
    const statuses: string[] = [];
    for (const client of clients) {
      client.on('data', (answer) => statuses.push(String(answer).slice(9, 12)));
      client.write('{}');
    }
    await expect
      .poll(() => ({ held: held.length, statuses }))
      .toEqual({ held: share, statuses: Array.from({ length: CLIENTS - share - waiting }, () => '503') });
    expect((await gateway.send('GET', '/closed')).status).toBe(200);
    for (let answered = 0; answered < share + waiting; answered++) {
      await expect.poll(() => held.length).toBeGreaterThan(answered);
      held[answered]?.end();
    }
    await expect.poll(() => statuses.filter((status) => status === '200')).toHaveLength(share + waiting);
  },
);

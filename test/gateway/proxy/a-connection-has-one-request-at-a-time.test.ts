import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { newCertificate } from '../../fixtures/certificate.ts';
import { PLENTY } from '../../fixtures/configuration.ts';
import { startGateway, type TestGateway } from '../../fixtures/gateway.ts';
import { connectRaw, sendRaw, untilClosed } from '../../fixtures/raw.ts';
import { startUpstream } from '../../fixtures/upstream.ts';

const HEAD = 'Host: weir\r\nAuthorization: Bearer service\r\n';
const GET = `GET /v3/things HTTP/1.1\r\n${HEAD}\r\n`;
const LAST = `GET /v3/things HTTP/1.1\r\n${HEAD}Connection: close\r\n\r\n`;

let gateway: TestGateway;

async function start(options: Parameters<typeof startGateway>[0] = {}): Promise<void> {
  gateway = await startGateway(options);
  onTestFinished(() => gateway.close());
}

/** An upstream that holds every request for the test to answer, and notes the most that it held at once. */
async function startHolding(
  settings: Readonly<Record<string, unknown>> = {},
  listen: Readonly<Record<string, unknown>> = {},
) {
  const held: { readonly url: string; readonly body: string; readonly response: ServerResponse }[] = [];
  const state = { held, most: 0 };
  const upstream = await startUpstream((request, response) => {
    void request.toArray().then((chunks) => {
      held.push({ url: request.url ?? '', body: Buffer.concat(chunks).toString(), response });
      state.most = Math.max(state.most, held.length);
    });
  });
  await start({
    upstream,
    limits: PLENTY,
    settings: {
      listen: { host: '127.0.0.1', port: 0, ...listen },
      upstream: { url: upstream.url, ...settings },
    },
  });
  return state;
}

const certificate = newCertificate();

describe.each([
  ['plain', {}],
  ['TLS', { tls: certificate }],
])('requests sent ahead of their answers, %s,', (_, listen) => {
  const COUNT = 30;
  const requests = (wish: string) =>
    Array.from({ length: COUNT }, (_, index) => {
      const last = index === COUNT - 1 ? 'Connection: close\r\n' : '';
      if (index % 3 === 0) return `GET /v3/things/t${index} HTTP/1.1\r\n${HEAD}${wish}${last}\r\n`;
      const body = `body ${index}`;
      if (index % 3 === 1)
        return `POST /v3/things/t${index} HTTP/1.1\r\n${HEAD}${last}Content-Length: ${body.length}\r\n\r\n${body}`;
      const size = body.length.toString(16);
      return `PUT /v3/things/t${index} HTTP/1.1\r\n${HEAD}${last}Transfer-Encoding: chunked\r\n\r\n${size}\r\n${body}\r\n0\r\n\r\n`;
    }).join('');
  const bytes = requests('');

  it.each([
    ['in one packet', [bytes]],
    ['in packets that end anywhere', bytes.match(/[\s\S]{1,97}/g) ?? []],
    ['with upgrades among them', [requests('Connection: upgrade\r\nUpgrade: h2c\r\n')]],
  ])('%s are served one at a time, in order, each with its body', async (_, packets) => {
    const upstream = await startHolding({}, listen);
    const socket = await connectRaw(gateway.url);
    socket.setNoDelay();
    const answer = untilClosed(socket);
    for (const packet of packets) {
      socket.write(packet);
      if (packets.length > 1) await new Promise(setImmediate);
    }
    for (let index = 0; index < COUNT; index++) {
      await expect.poll(() => upstream.held.length, { interval: 1 }).toBe(1);
      const { url, body, response } = upstream.held[0] ?? {};
      expect([url, body]).toEqual([`/v3/things/t${index}`, index % 3 === 0 ? '' : `body ${index}`]);
      upstream.held.pop();
      response?.end(`answer ${index}.`);
    }
    const { text, statuses } = await answer;
    expect(upstream.most).toBe(1);
    expect(statuses).toEqual(Array(COUNT).fill(200));
    expect(text.match(/answer \d+\./g)).toEqual(
      Array.from({ length: COUNT }, (_, index) => `answer ${index}.`),
    );
  });

  let serving: TestGateway;
  beforeAll(async () => {
    serving = await startGateway({
      limits: PLENTY,
      settings: { listen: { host: '127.0.0.1', port: 0, ...listen } },
    });
  });
  afterAll(() => serving.close());

  it('are all answered where there are thousands', async () => {
    const count = 3_000;
    const socket = await connectRaw(serving.url);
    const answer = untilClosed(socket);
    socket.write('GET / HTTP/1.1\r\nHost: weir\r\n\r\n'.repeat(count));
    socket.write('GET / HTTP/1.1\r\nHost: weir\r\nConnection: close\r\n\r\n');
    const { statuses } = await answer;
    expect(statuses).toHaveLength(count + 1);
    expect(new Set(statuses)).toEqual(new Set([401]));
  });

  it('are served where their bytes do not end with a read', async () => {
    const body = 'b'.repeat(20_000);
    const put = `PUT /v3/things HTTP/1.1\r\n${HEAD}Content-Length: ${body.length}\r\n\r\n${body}`;
    const answer = await sendRaw(serving.url, `${GET}${put}${GET}${put}${LAST}`);
    expect(answer.statuses).toEqual([200, 200, 200, 200, 200]);
  });

  it.each([
    ['a new connection', '', []],
    ['a request', GET, [200]],
    ['a request that is not plain', GET.replace('Host', 'TE: trailers\r\nHost'), [200]],
  ])('end the connection if they are thousands of empty lines, behind %s', async (_, first, statuses) => {
    const socket = await connectRaw(serving.url);
    const answer = untilClosed(socket);
    socket.write(first);
    if (first !== '') await once(socket, 'data');
    socket.write('\r\n'.repeat(2_000));
    expect((await answer).statuses).toEqual(statuses);
  });

  it.each([
    ['HTTP/1.1', 'GET / HTTP/1.1\r\nHost: weir\r\n\r\n'],
    ['HTTP/1.1 that is not plain', 'GET / HTTP/1.1\r\nHost: weir\r\nTE: a\r\n\r\n'],
    ['HTTP/1.0', 'GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n'],
    ['chunks', 'PUT / HTTP/1.1\r\nHost: weir\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n'],
  ])('do not hold up another connection: %s', async (_version, request) => {
    const burst = request.repeat(Math.floor(65_536 / request.length));
    const sockets = await Promise.all(Array.from({ length: 10 }, () => connectRaw(serving.url)));
    let answered = 0;
    const countAnswers = (bytes: Buffer) => {
      answered += bytes.toString('latin1').split('HTTP/1.1 ').length - 1;
    };
    for (const socket of sockets) socket.on('data', countAnswers).write(burst);
    await expect.poll(() => answered, { interval: 1 }).toBeGreaterThan(0);
    const before = answered;
    expect((await sendRaw(serving.url, LAST)).statuses).toEqual([200]);
    expect(answered - before).toBeLessThan((10 * 65_536) / request.length / 2);
    for (const socket of sockets) socket.destroy();
  });
});

describe('requests that are not charged', () => {
  const OPTIONS = 'OPTIONS /v3/things HTTP/1.1\r\nHost: weir\r\n\r\n';

  it('of one connection use one upstream socket, regardless of their number', async () => {
    const upstream = await startHolding({ connections: 40, unauthenticatedPercent: 50 });
    const socket = await connectRaw(gateway.url);
    socket.write(OPTIONS.repeat(1_000));
    await expect.poll(() => upstream.held.length).toBe(1);
    // A tenth of the places is reserved for others.
    const served = Array.from({ length: 35 }, () => gateway.send('GET', '/v3/things'));
    await expect.poll(() => upstream.held.length).toBe(36);
    expect(upstream.held.filter(({ response }) => response.req.method === 'OPTIONS')).toHaveLength(1);
    socket.destroy();
    for (const { response } of upstream.held) response.end();
    for (const answer of served) expect((await answer).status).toBe(200);
  });

  it('of many connections use only their share of the sockets', async () => {
    const upstream = await startHolding({ connections: 20, unauthenticatedPercent: 10 });
    const strangers = await Promise.all(Array.from({ length: 50 }, () => connectRaw(gateway.url)));
    const answers = strangers.map((stranger) => untilClosed(stranger));
    for (const stranger of strangers)
      stranger.write(OPTIONS.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n'));
    await expect.poll(() => upstream.held.length).toBe(2);
    // A tenth of the places is reserved for others.
    const served = Array.from({ length: 16 }, () => gateway.send('GET', '/v3/things'));
    await expect.poll(() => upstream.held.length).toBe(18);
    for (const { response } of upstream.held) response.end();
    for (const answer of served) expect((await answer).status).toBe(200);
    const statuses = (await Promise.all(answers)).flatMap((answer) => answer.statuses).sort();
    expect(statuses).toEqual([200, 200, ...Array(48).fill(503)]);
    // The share is free again.
    const next = gateway.send('OPTIONS', '/v3/things', { token: null });
    await expect.poll(() => upstream.held.length).toBe(19);
    upstream.held[18]?.response.end();
    expect((await next).status).toBe(200);
  });

  it.each([
    ['of a known length', 'Content-Length: 5\r\n\r\nhe', 'Connection: close'],
    ['that is long', 'Content-Length: 500000\r\n\r\nhe', ''],
    ['in chunks', 'Transfer-Encoding: chunked\r\n\r\n5\r\nhel', ''],
  ])('and have an unfinished body %s are refused at once', async (_, body, close) => {
    await start();
    const socket = await connectRaw(gateway.url);
    const answer = untilClosed(socket);
    socket.write(`OPTIONS /v3/things HTTP/1.1\r\nHost: weir\r\n${close === '' ? '' : `${close}\r\n`}${body}`);
    const { statuses, text } = await answer;
    expect(statuses).toEqual([400]);
    expect(text).toContain('An OPTIONS request must not have a body.');
    expect(gateway.upstream.seen).toEqual([]);
  });

  it('with an explicitly empty body are served', async () => {
    await start();
    const answer = await gateway.send('OPTIONS', '/v3/things', {
      token: null,
      headers: { 'Content-Length': '0' },
    });
    expect(answer.status).toBe(200);
  });
});

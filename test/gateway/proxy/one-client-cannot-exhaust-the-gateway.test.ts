import { once } from 'node:events';
import { setTimeout } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { PLENTY } from '../../fixtures/configuration.ts';
import { startGateway, type TestGateway } from '../../fixtures/gateway.ts';
import { connectRaw, sendRaw, untilClosed } from '../../fixtures/raw.ts';
import { startUpstream, type TestUpstream } from '../../fixtures/upstream.ts';

let gateway: TestGateway;
afterEach(() => gateway.close());

const HEAD = 'Host: weir\r\nAuthorization: Bearer service\r\n';

async function start(listen: Readonly<Record<string, unknown>>, upstream?: TestUpstream): Promise<void> {
  gateway = await startGateway({
    ...(upstream === undefined ? {} : { upstream }),
    limits: PLENTY,
    settings: { listen: { host: '127.0.0.1', port: 0, ...listen }, log: { level: 'warn' } },
  });
}

describe('a header', () => {
  it('longer than allowed is 431, and the connection closes', async () => {
    await start({ maxHeaderBytes: 4096 });
    const answer = await sendRaw(
      gateway.url,
      `GET /v3/things HTTP/1.1\r\n${HEAD}X-A: ${'a'.repeat(5000)}\r\n\r\n`,
    );
    expect(answer.statuses).toEqual([431]);
    expect(answer.text).toContain('Content-Type: application/problem+json');
    expect(answer.text).toContain('"status":431');
    expect(gateway.upstream.seen).toEqual([]);
  });

  it.each([
    ['that never ends', `GET /v3/things HTTP/1.1\r\n${HEAD}`],
    ['that drips', 'GET /v3'],
  ])('%s is closed after its timeout, without affecting others', async (_, bytes) => {
    await start({ headersTimeoutMs: 300 });
    const slow = await connectRaw(gateway.url);
    const ended = untilClosed(slow);
    slow.write(bytes);
    const drip = setInterval(() => slow.write('x'), 50);
    let served = 0;
    const state = { isEnded: false };
    void ended.then(() => {
      state.isEnded = true;
    });
    while (!state.isEnded) {
      expect((await gateway.send('GET', '/v3/things')).status).toBe(200);
      served++;
      await setTimeout(10);
    }
    clearInterval(drip);
    expect((await ended).statuses).toEqual([408]);
    expect(served).toBeGreaterThan(0);
  });
});

describe('a body', () => {
  it('longer than allowed by its Content-Length is a 413 before anything is charged', async () => {
    await start({ maxBodyBytes: 1000 });
    const answer = await gateway.send('POST', '/v3/things', { body: 'x'.repeat(1001) });
    expect(answer.status).toBe(413);
    expect(answer.headers.get('RateLimit')).toBeNull();
    expect(await answer.json()).toMatchObject({ code: 'PayloadTooLarge', title: 'Payload Too Large' });
    expect((await gateway.send('POST', '/v3/things', { body: 'x'.repeat(1000) })).status).toBe(200);
  });

  it('whose chunks turn out longer than allowed is 413', async () => {
    await start({ maxBodyBytes: 1000 });
    const chunk = `fa0\r\n${'x'.repeat(4000)}\r\n0\r\n\r\n`;
    const answer = await sendRaw(
      gateway.url,
      `POST /v3/things HTTP/1.1\r\n${HEAD}Transfer-Encoding: chunked\r\n\r\n${chunk}`,
    );
    expect(answer.statuses).toEqual([413]);
  });

  it('that never ends is aborted after its timeout', async () => {
    const upstream = await startUpstream((incoming, response) => {
      incoming.resume().once('end', () => response.end('ok'));
    });
    await start({ requestTimeoutMs: 300 }, upstream);
    const slow = await connectRaw(gateway.url);
    const ended = untilClosed(slow);
    slow.write(`POST /v3/things HTTP/1.1\r\n${HEAD}Content-Length: 100000\r\n\r\nabc`);
    expect((await ended).statuses).toEqual([408]);
    expect((await gateway.send('GET', '/v3/things')).status).toBe(200);
  });
});

it('a body that never ends after its response gets no second response', async () => {
  await start({ requestTimeoutMs: 300 });
  const slow = await connectRaw(gateway.url);
  const ended = untilClosed(slow);
  slow.write(`POST /v3/things HTTP/1.1\r\n${HEAD}Content-Length: 100000\r\n\r\n${'x'.repeat(65_536)}`);
  expect((await ended).statuses).toEqual([200]);
});

it('connections above the limit get an uncharged 503', async () => {
  await start({ maxConnections: 3 });
  const held = await Promise.all(Array.from({ length: 3 }, () => connectRaw(gateway.url)));
  const request = `GET /v3/things HTTP/1.1\r\n${HEAD}\r\n`;
  // Each is known to the gateway once it has been answered.
  for (const socket of held) {
    socket.write(request);
    expect(String((await once(socket, 'data'))[0])).toMatch(/^HTTP\/1\.1 200/);
  }
  const answer = await sendRaw(gateway.url, request);
  expect(answer.statuses).toEqual([503]);
  expect(answer.text).not.toMatch(/RateLimit|Retry-After/);
  expect(gateway.upstream.seen).toHaveLength(3);
  held[0]?.destroy();
  await expect
    .poll(
      async () =>
        (await sendRaw(gateway.url, request.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n'))).statuses,
    )
    .toEqual([200]);
  for (const socket of held) socket.destroy();
});

/** A process that uses 5 % of a core or less in a turn counts as stopped. */
const BUSY_SHARE = 0.1;

const NEVER = new Int32Array(new SharedArrayBuffer(4));

/** One turn of the event loop of this length, which takes as little CPU time as it can without being taken for a stop. */
function blockLoop(ms: number): void {
  const fromMs = performance.now();
  const before = process.cpuUsage();
  for (let elapsedMs = 0; elapsedMs < ms; elapsedMs = performance.now() - fromMs) {
    const { user, system } = process.cpuUsage(before);
    if ((user + system) / 1_000 > BUSY_SHARE * elapsedMs) Atomics.wait(NEVER, 0, 0, 5);
  }
}

it('one long turn of the event loop is no overload: what came in meanwhile and what follows is served', async () => {
  await start({ maxEventLoopDelayMs: 300 });
  const statuses = new Set<number>();
  const send = async () => statuses.add((await gateway.send('GET', '/v3/things')).status);
  await send();
  const waiting = Array.from({ length: 20 }, send);
  blockLoop(4_000);
  await Promise.all(waiting);
  for (const untilMs = performance.now() + 1_500; performance.now() < untilMs; await setTimeout(20))
    await send();
  expect([...statuses]).not.toContain(503);
});

it('an event loop delay is an uncharged 503, and never a 429', async () => {
  await start({ maxEventLoopDelayMs: 20 });
  const block = setInterval(() => blockLoop(400), 10);
  let answer = await gateway.send('GET', '/v3/things');
  while (answer.status === 200) answer = await gateway.send('GET', '/v3/things');
  clearInterval(block);
  expect(answer.status).toBe(503);
  expect(await answer.json()).toMatchObject({
    code: 'ServiceUnavailable',
    detail: 'The gateway is too busy.',
  });
  expect(answer.headers.get('RateLimit')).toBeNull();
  expect(answer.headers.get('Retry-After')).toBeNull();
  await expect
    .poll(async () => (await gateway.send('GET', '/v3/things')).status, { timeout: 60_000 })
    .toBe(200);
  expect(gateway.lines.join('')).toContain('the gateway is overloaded: every new request gets a 503');
});

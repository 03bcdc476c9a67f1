import { once } from 'node:events';
import { Agent, type IncomingMessage, request } from 'node:http';
import { setTimeout } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PLENTY } from '../../fixtures/configuration.ts';
import { connectRaw, sendRaw, untilClosed } from '../../fixtures/raw.ts';
import { startUpstream, type TestUpstream } from '../../fixtures/upstream.ts';
import { startWeir, type WeirProcess } from '../../fixtures/weir-process.ts';

let upstream: TestUpstream;
beforeAll(async () => {
  upstream = await startUpstream(async (incoming, response) => {
    if (incoming.url === '/v3/things/slow') await setTimeout(700);
    if (incoming.url === '/v3/things/endless') response.write('begun');
    else response.end('ok');
  });
});
afterAll(() => upstream.close());

async function start(shutdown: { drainDelaySeconds: number; graceSeconds: number }): Promise<WeirProcess> {
  const settings = { log: { level: 'info', access: false }, shutdown };
  return startWeir({ upstreamUrl: upstream.url, limits: PLENTY, settings });
}

async function endOf(
  { process }: WeirProcess,
  signal: NodeJS.Signals = 'SIGTERM',
): Promise<{ code: number | null; tookMs: number }> {
  const startedMs = performance.now();
  process.kill(signal);
  const [code] = (await once(process, 'exit')) as [number | null];
  return { code, tookMs: performance.now() - startedMs };
}

interface Tally {
  ok: number;
  readonly failures: string[];
}

/** One request over kept connections; what comes of it is tallied. */
function fire(url: string, agent: Agent, tally: Tally): void {
  const outgoing = request(`${url}/v3/things`, { agent, headers: { Authorization: 'Bearer service' } });
  outgoing.on('error', (error: NodeJS.ErrnoException) => tally.failures.push(error.code ?? error.message));
  outgoing.on('response', (answer: IncomingMessage) => {
    if (answer.statusCode === 200) tally.ok++;
    else tally.failures.push(String(answer.statusCode));
    answer.resume();
  });
  outgoing.end();
}

const isReady = async ({ adminUrl }: WeirProcess) => (await fetch(`${adminUrl}/readyz`)).ok;

describe('a signal to end', () => {
  it('at 500 requests a second over kept connections fails not one of them', async () => {
    // Long enough for a busy machine to see that the replica is not ready, and to stop sending.
    const weir = await start({ drainDelaySeconds: 8, graceSeconds: 5 });
    const agent = new Agent({ keepAlive: true, maxSockets: 50 });
    const tally: Tally = { ok: 0, failures: [] };
    const state = { isInRotation: true };
    // Five every ten milliseconds, for as long as this stand-in for a load balancer believes in the replica.
    const load = setInterval(() => {
      for (let count = 0; count < 5 && state.isInRotation; count++) fire(weir.url, agent, tally);
    }, 10);
    await expect.poll(() => tally.ok).toBeGreaterThan(250);
    const end = endOf(weir);
    await expect.poll(() => isReady(weir), { interval: 100 }).toBe(false);
    const servedBefore = tally.ok;
    const answered = await sendRaw(
      weir.url,
      'GET /v3/things HTTP/1.1\r\nHost: weir\r\nAuthorization: Bearer service\r\n\r\n',
    );
    expect(answered.statuses).toEqual([200]);
    expect(answered.text).toMatch(/^Connection: close\r$/m);
    await expect.poll(() => tally.ok, { interval: 10 }).toBeGreaterThan(servedBefore + 50);
    state.isInRotation = false;
    clearInterval(load);
    const { code } = await end;
    expect(tally.failures).toEqual([]);
    expect(code).toBe(0);
    agent.destroy();
  });

  it.each([
    ['SIGTERM', ''],
    ['SIGHUP', ''],
    // Read by Node's server.
    ['SIGTERM', 'TE: trailers\r\n'],
  ] as const)(
    '%s finishes a request in progress %j, as the last of its connection',
    async (signal, field) => {
      const weir = await start({ drainDelaySeconds: 0, graceSeconds: 5 });
      const socket = await connectRaw(weir.url);
      const answer = untilClosed(socket);
      const { length } = upstream.seen;
      const head = 'GET /v3/things/slow HTTP/1.1\r\nHost: weir\r\nAuthorization: Bearer service\r\n';
      socket.write(`${head}${field}\r\n`);
      await expect.poll(() => upstream.seen.length).toBe(length + 1);
      const { code } = await endOf(weir, signal);
      const { statuses, text } = await answer;
      expect(statuses).toEqual([200]);
      expect(text).toMatch(/^Connection: close\r$/m);
      expect(code).toBe(0);
    },
  );

  it('ends with 0 within its grace, whatever is still open', async () => {
    const weir = await start({ drainDelaySeconds: 0, graceSeconds: 1 });
    const endless = await connectRaw(weir.url);
    const cut = untilClosed(endless);
    endless.write('GET /v3/things/endless HTTP/1.1\r\nHost: weir\r\nAuthorization: Bearer service\r\n\r\n');
    const idle = untilClosed(await connectRaw(weir.url));
    await expect.poll(() => upstream.seen.at(-1)?.url).toBe('/v3/things/endless');
    const { code, tookMs } = await endOf(weir);
    expect(code).toBe(0);
    expect(tookMs).toBeLessThan(10_000);
    expect((await cut).text).toContain('begun');
    expect((await idle).text).toBe('');
  });
});

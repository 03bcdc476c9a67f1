import { once } from 'node:events';
import { Agent, get } from 'node:http';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { PLENTY } from '../../fixtures/configuration.ts';
import { connectRaw } from '../../fixtures/raw.ts';
import { HANDSHAKE, startTunnelUpstream } from '../../fixtures/tunnels.ts';
import { startUpstream, type TestUpstream } from '../../fixtures/upstream.ts';
import { startWeir } from '../../fixtures/weir-process.ts';

let upstream: TestUpstream;
beforeAll(async () => {
  upstream = await startUpstream();
});
afterAll(() => upstream.close());

/** Sends requests without a pause until one fails. @returns the ids of those that were answered */
async function sendUntilClosed(url: string, worker: number): Promise<string[]> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const answered: string[] = [];
  try {
    for (;;) {
      const id = `request-${worker}-${answered.length}`;
      await answerTo(url, agent, id);
      answered.push(id);
    }
  } catch {
    return answered;
  } finally {
    agent.destroy();
  }
}

function answerTo(url: string, agent: Agent, id: string): Promise<void> {
  const headers = { Authorization: 'Bearer service', 'X-Request-Id': id };
  return new Promise((resolve, reject) => {
    const request = get(`${url}/v3/things`, { agent, headers }, (response) => {
      response.once('end', resolve).once('error', reject).resume();
    });
    request.once('error', reject);
  });
}

it.each([
  ['SIGTERM', { drainDelaySeconds: 0, graceSeconds: 5 }],
  ['SIGINT', { drainDelaySeconds: 0, graceSeconds: 5 }],
] as const)(
  'every request that was answered has its line when %s ends the process',
  async (signal, shutdown) => {
    const settings = { log: { level: 'info', access: true }, shutdown };
    const weir = await startWeir({ upstreamUrl: upstream.url, limits: PLENTY, settings });
    const clients = Promise.all(Array.from({ length: 16 }, (_, worker) => sendUntilClosed(weir.url, worker)));
    const lineCount = () => weir.lines.length;
    await expect.poll(lineCount, { interval: 10 }).toBeGreaterThan(300);
    const ended = once(weir.process, 'close');
    weir.process.kill(signal);
    await ended;
    const answered = (await clients).flat();
    const logged = weir.lines.map((line) => (JSON.parse(line) as { requestId?: string }).requestId);
    const missing = new Set(answered);
    for (const id of logged) if (id !== undefined) missing.delete(id);
    expect([...missing]).toEqual([]);
    expect(new Set(logged.filter((id) => id !== undefined)).size).toBeGreaterThanOrEqual(answered.length);
    expect(weir.process.exitCode).toBe(0);
  },
);

it('every line is there as well when a second signal ends the process at once', async () => {
  const settings = { log: { level: 'info', access: true } };
  const weir = await startWeir({ upstreamUrl: upstream.url, limits: PLENTY, settings });
  const agent = new Agent({ keepAlive: true });
  for (let count = 0; count < 20; count++) await answerTo(weir.url, agent, `before-${count}`);
  const ended = once(weir.process, 'close');
  // Two signals end the process at once.
  weir.process.kill('SIGINT');
  weir.process.kill('SIGINT');
  await ended;
  agent.destroy();
  const text = weir.lines.join('\n');
  for (let count = 0; count < 20; count++) expect(text).toContain(`before-${count}"`);
});

it('a request and a WebSocket that outlive the grace have their lines, which blame no upstream', async () => {
  const silent = await startTunnelUpstream(() => {});
  const settings = {
    log: { level: 'info', access: true },
    shutdown: { drainDelaySeconds: 0, graceSeconds: 1 },
  };
  const weir = await startWeir({ upstreamUrl: silent.url, limits: PLENTY, settings });
  const send = async (id: string, fields: readonly string[]) => {
    const lines = [
      'GET /v3/things HTTP/1.1',
      ...fields,
      'Authorization: Bearer service',
      `X-Request-Id: ${id}`,
    ];
    (await connectRaw(weir.url)).on('error', () => {}).write(`${lines.join('\r\n')}\r\n\r\n`);
  };
  await send('plain', ['Host: weir']);
  await send('tunnel', HANDSHAKE);
  await expect.poll(() => [silent.seen.length, silent.open()]).toEqual([1, 1]);
  const ended = once(weir.process, 'close');
  weir.process.kill('SIGTERM');
  await ended;
  const lines = weir.lines.map((line) => JSON.parse(line) as Record<string, unknown>);
  const of = (id: string) => lines.filter(({ requestId }) => requestId === id);
  expect(of('plain')).toMatchObject([{ outcome: 'admitted', status: 0 }]);
  expect(of('tunnel')).toMatchObject([{ outcome: 'admitted', status: 101, upstreamMs: expect.any(Number) }]);
  expect(
    [...of('plain'), ...of('tunnel')].filter(({ upstreamError }) => upstreamError !== undefined),
  ).toEqual([]);
  await silent.close();
});

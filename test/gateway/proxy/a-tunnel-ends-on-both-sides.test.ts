import type { Socket } from 'node:net';
import { describe, expect, it, onTestFinished, type TestContext } from 'vitest';
import { newCertificate } from '../../fixtures/certificate.ts';
import { PLENTY } from '../../fixtures/configuration.ts';
import { startGateway, type TestGateway } from '../../fixtures/gateway.ts';
import { connectRaw } from '../../fixtures/raw.ts';
import { HANDSHAKE, handshake, startTunnelUpstream } from '../../fixtures/tunnels.ts';

const CALLER = ['Authorization: Bearer service'];

/** Long enough for a busy machine to carry a byte; short enough to wait for. */
const IDLE_MS = 2_000;
const PAUSE_MS = 50;

interface Started {
  readonly gateway: TestGateway;
  open(): Promise<Tunnel>;
}

interface Tunnel {
  readonly client: Socket;
  readonly behind: Socket;
}

async function start(
  listen: object,
  settings: object = {},
  log: object = {},
  finished: TestContext['onTestFinished'] = onTestFinished,
): Promise<Started> {
  const upstream = await startTunnelUpstream();
  const gateway = await startGateway({
    upstream,
    limits: PLENTY,
    settings: { listen, upstream: { url: upstream.url, ...settings }, shutdown: { graceSeconds: 0 }, ...log },
  });
  let closing: Promise<void> | undefined;
  const close = () => {
    closing ??= gateway.close();
    return closing;
  };
  finished(close);
  return {
    gateway: { ...gateway, close },
    async open() {
      const { socket: client, status } = await handshake(gateway.url, '/v3/things', CALLER);
      expect(status).toBe(101);
      // Both ends are the test's own: neither ends because the other has.
      client.allowHalfOpen = true;
      const behind = upstream.tunnels.at(-1);
      if (behind === undefined) throw new Error('the upstream has no tunnel');
      client.resume();
      behind.resume();
      return { client, behind };
    },
  };
}

/** Waits until nothing more can arrive (`end`), be it by an end or a reset, or until both directions have ended. */
async function until(socket: Socket, event: 'end' | 'close'): Promise<void> {
  const isOver = () => socket.closed || (event === 'end' && socket.readableEnded);
  await new Promise<void>((resolve) => {
    const look = () => {
      if (isOver()) resolve();
    };
    socket.on('end', look).on('close', look);
    look();
  });
}

/** Node cannot reset a connection with TLS. */
function reset(socket: Socket): void {
  if ('encrypted' in socket) socket.destroy();
  else socket.resetAndDestroy();
}

async function openTunnels(gateway: TestGateway): Promise<string | undefined> {
  return /^weir_tunnels\{traffic="caller"\} (\d+)$/m.exec(await gateway.metrics())?.[1];
}

async function idleTunnels(gateway: TestGateway): Promise<string | undefined> {
  return /^weir_tunnels_idle_total (\d+)$/m.exec(await gateway.metrics())?.[1];
}

async function textOf(socket: Socket): Promise<string> {
  let text = '';
  socket.on('data', (chunk) => {
    text += String(chunk);
  });
  await until(socket, 'end');
  return text;
}

const PORTS: [string, object][] = [
  ['plain', {}],
  ['TLS', { tls: newCertificate() }],
];

describe.each(PORTS)('over %s', (_, listen) => {
  it.each([
    ['a client that closes', (client: Socket) => client.destroy()],
    ['a client that resets', reset],
  ])('%s closes the upstream', async (_, leave) => {
    const { gateway, open } = await start(listen);
    const { client, behind } = await open();
    expect(await openTunnels(gateway)).toBe('1');
    leave(client);
    await until(behind, 'end');
    behind.destroy();
    await expect.poll(() => openTunnels(gateway)).toBe('0');
  });

  it.each([
    ['closes', (behind: Socket) => behind.destroy()],
    ['resets', reset],
  ])('an upstream that %s closes the client', async (_, leave) => {
    const { gateway, open } = await start(listen);
    const { client, behind } = await open();
    leave(behind);
    await until(client, 'end');
    client.destroy();
    await expect.poll(() => openTunnels(gateway)).toBe('0');
  });

  it('a side that ends gets the rest of what the other side sends', async () => {
    const { gateway, open } = await start(listen);
    const { client, behind } = await open();
    const asked = textOf(behind);
    const answered = textOf(client);
    const long = 'x'.repeat(1_000_000);
    client.end(`last words${long}`);
    expect(await asked).toBe(`last words${long}`);
    behind.end(`last answer${long}`);
    expect(await answered).toBe(`last answer${long}`);
    await Promise.all([until(client, 'close'), until(behind, 'close')]);
    await expect.poll(() => openTunnels(gateway)).toBe('0');
  });

  it('an upstream that ends is followed by a client that still sends', async () => {
    const { open } = await start(listen);
    const { client, behind } = await open();
    const asked = textOf(behind);
    const answered = textOf(client);
    behind.end('bye');
    expect(await answered).toBe('bye');
    client.end('x'.repeat(1_000_000));
    expect((await asked).length).toBe(1_000_000);
    await Promise.all([until(client, 'close'), until(behind, 'close')]);
  });

  it.each([
    ['a client', ({ client }: Tunnel) => client],
    ['an upstream', ({ behind }: Tunnel) => behind],
  ])('%s that ends alone closes both sides, which is not an idle tunnel', async (_, sideOf) => {
    const { gateway, open } = await start(listen, { tunnelIdleTimeoutMs: PAUSE_MS });
    const tunnel = await open();
    sideOf(tunnel).end();
    await Promise.all([until(tunnel.client, 'end'), until(tunnel.behind, 'end')]);
    await expect.poll(() => openTunnels(gateway)).toBe('0');
    expect(await idleTunnels(gateway)).toBe('0');
  });

  it('a client that ended before its handshake was answered closes both sides, which is not an idle tunnel', async () => {
    const { gateway } = await start({ ...listen, halfClose: 'serve' }, { tunnelIdleTimeoutMs: PAUSE_MS });
    const client = await connectRaw(gateway.url);
    client.on('error', () => {});
    client.allowHalfOpen = true;
    client.end(`GET /v3/things HTTP/1.1\r\n${[...CALLER, ...HANDSHAKE].join('\r\n')}\r\n\r\n`);
    expect(await textOf(client)).toMatch(/^HTTP\/1\.1 101 /);
    await expect.poll(() => openTunnels(gateway)).toBe('0');
    expect(await idleTunnels(gateway)).toBe('0');
  });

  it('a client that keeps sending, and never ends, is closed after its upstream', async () => {
    const { open } = await start(listen);
    const { client, behind } = await open();
    const timer = setInterval(() => client.write('more'), PAUSE_MS);
    onTestFinished(() => clearInterval(timer));
    behind.end('bye', () => behind.destroy());
    // Its next write fails.
    await until(client, 'close');
  });

  it('an idle tunnel is closed on both sides, and named so in the log', async () => {
    const log = { log: { level: 'info', access: true } };
    const { gateway, open } = await start(listen, { tunnelIdleTimeoutMs: PAUSE_MS }, log);
    const { client, behind } = await open();
    await Promise.all([until(client, 'end'), until(behind, 'end')]);
    await expect.poll(() => idleTunnels(gateway)).toBe('1');
    expect(await openTunnels(gateway)).toBe('0');
    const line = gateway.lines.find((one) => one.includes('"msg":"request"')) ?? '{}';
    expect(JSON.parse(line)).toMatchObject({ status: 101, upstreamError: 'UPSTREAM_TUNNEL_IDLE' });
  });

  it.concurrent.for<[string, (tunnel: Tunnel) => Socket]>([
    ['the client', ({ client }) => client],
    ['the upstream', ({ behind }) => behind],
  ])('a tunnel on which only %s sends stays open', async ([_, sideOf], { onTestFinished }) => {
    const { open } = await start(listen, { tunnelIdleTimeoutMs: IDLE_MS }, {}, onTestFinished);
    const busy = await open();
    const timer = setInterval(() => sideOf(busy).write('ping'), PAUSE_MS);
    onTestFinished(() => clearInterval(timer));
    const silent = await open();
    await until(silent.client, 'end');
    expect([busy.client.readableEnded, busy.behind.readableEnded]).toEqual([false, false]);
    clearInterval(timer);
    await Promise.all([until(busy.client, 'end'), until(busy.behind, 'end')]);
  });

  it('a gateway that shuts down closes both sides at the end of its grace period', async () => {
    const { gateway, open } = await start(listen);
    const { client, behind } = await open();
    await Promise.all([gateway.close(), until(client, 'end'), until(behind, 'end')]);
  });
});

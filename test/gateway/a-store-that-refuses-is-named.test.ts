import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { networkInterfaces } from 'node:os';
import { Redis } from 'ioredis';
import { pino } from 'pino';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { startGateway } from '../fixtures/gateway.ts';
import { startSentinel } from '../fixtures/redis-sentinel.ts';
import { startRedisServer } from '../fixtures/redis-server.ts';
import { startTlsRedis } from '../fixtures/redis-tls.ts';
import { startUpstream } from '../fixtures/upstream.ts';
import { startWeir, type WeirProcess } from '../fixtures/weir-process.ts';

interface Line {
  readonly level: number;
  readonly reason?: string;
  readonly problem?: string;
}

const ERROR = 50;
const WARNING = 40;

interface Running {
  readonly url: string;
  readonly adminUrl: string;
  /** What it has written to standard output. */
  readonly lines: readonly string[];
}

/** A gateway in this process whose store is this one. */
async function start(store: object): Promise<Running> {
  const lines: string[] = [];
  const output = { write: (line: string) => void lines.push(line), flushSync() {} };
  const log = { log: pino({}, output), lines: output };
  const gateway = await startGateway({ store: { ...store }, settings: { log: { level: 'info' } }, log });
  onTestFinished(() => gateway.close());
  return { url: gateway.url, adminUrl: gateway.adminUrl, lines };
}

/** As `start`, in a process of its own: what libraries print is seen too. */
async function startProcess(store: object): Promise<WeirProcess> {
  const upstream = await startUpstream();
  onTestFinished(() => upstream.close());
  const weir = await startWeir({ upstreamUrl: upstream.url, store: { ...store } });
  onTestFinished(() => weir.close());
  return weir;
}

/** Resolves once the log has named a reason. */
async function untilNamed({ url, lines }: Running): Promise<Line> {
  await fetch(`${url}/v3/things`, { headers: { Authorization: 'Bearer person' } });
  const named = await vi.waitFor(
    () => {
      const line = parsed(lines).find(({ reason, level }) => level >= WARNING && reason !== undefined);
      expect(line, lines.join('\n')).toBeDefined();
      return line;
    },
    { timeout: 60_000, interval: 100 },
  );
  if (named === undefined) throw new Error('unreachable');
  return named;
}

async function startUntilNamed(store: object): Promise<Line> {
  return untilNamed(await start(store));
}

/** Every line as JSON; throws at the first line that is not JSON. */
function parsed(lines: readonly string[]): Line[] {
  return lines.map((line) => JSON.parse(line) as Line);
}

async function metricsOf({ adminUrl }: Running): Promise<string> {
  return (await fetch(`${adminUrl}/metrics`)).text();
}

async function serve(answer: (socket: Socket) => void): Promise<{ url: string; server: Server }> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {}).on('close', () => sockets.delete(socket));
    answer(socket);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return { url: `redis://:a-password@127.0.0.1:${(server.address() as AddressInfo).port}`, server };
}

const PROTECTED =
  '-DENIED Redis is running in protected mode because protected mode is enabled and no password is set for the default user.\r\n';

/** An address that Redis does not take for its own machine. */
const outside = Object.values(networkInterfaces())
  .flat()
  .find((one) => one?.family === 'IPv4' && !one.internal)?.address;

describe('a store that refuses the gateway is an error in the log and a reason in the metrics', () => {
  it.skipIf(outside === undefined)(
    'a real Redis in protected mode (needs an address besides the loopback)',
    async () => {
      const redis = await startRedisServer({ args: ['--bind', '0.0.0.0', '--protected-mode', 'yes'] });
      onTestFinished(() => redis.stop());
      const url = `redis://:a-password@${outside}:${redis.port}`;
      const weir = await start({ kind: 'redis', url });
      expect(await untilNamed(weir)).toMatchObject({
        level: ERROR,
        reason: 'auth',
        problem: expect.stringContaining('DENIED'),
      });
      expect(await metricsOf(weir)).toMatch(/weir_store_connection_failures_total\{reason="auth"\} [1-9]/);
    },
  );

  it.each(['redis', 'cluster', 'sentinel'])('%s: protected mode prints nothing but JSON', async (kind) => {
    const { url } = await serve((socket) => socket.end(PROTECTED));
    const addresses = {
      redis: { url },
      cluster: { nodes: [url] },
      sentinel: { sentinels: [url], name: 'x' },
    };
    const weir = await startProcess({ kind, ...addresses[kind as keyof typeof addresses] });
    const named = await untilNamed(weir);
    // ioredis hides what a Sentinel answered before it closed the connection.
    if (kind !== 'sentinel') expect(named).toMatchObject({ level: ERROR, reason: 'auth' });
    expect(weir.errorLines).toEqual([]);
    expect(parsed(weir.lines).length).toBeGreaterThan(0);
  });

  it('a wrong password, at a gateway that is ready all the same', async () => {
    const redis = await startRedisServer({ args: ['--requirepass', 'right'] });
    onTestFinished(() => redis.stop());
    const url = redis.url.replace('//', '//:wrong-one@');
    const weir = await start({ kind: 'redis', url });
    expect(await untilNamed(weir)).toMatchObject({
      level: ERROR,
      reason: 'auth',
      problem: expect.stringContaining('WRONGPASS'),
    });
    expect((await fetch(`${weir.adminUrl}/readyz`)).status).toBe(200);
    expect(weir.lines.join('\n')).not.toContain('wrong-one');
  });

  it('a user without permission to run scripts', async () => {
    const redis = await startRedisServer({ args: ['--user', 'weir', 'on', '>pw', '~*', '-@all', '+hello'] });
    onTestFinished(() => redis.stop());
    const url = redis.url.replace('//', '//weir:pw@');
    const named = await startUntilNamed({ kind: 'redis', url });
    expect(named).toMatchObject({ level: ERROR, reason: 'auth' });
  });
});

describe('a store that cannot be reached is a warning with a hint', () => {
  it('TLS to a port without TLS', async () => {
    const redis = await startRedisServer();
    onTestFinished(() => redis.stop());
    const named = await startUntilNamed({ kind: 'redis', url: redis.url.replace('redis:', 'rediss:') });
    expect(named).toMatchObject({ level: WARNING, reason: 'disconnected' });
    expect(named.problem).toContain('may not speak TLS');
  });

  it('plain text to a port with TLS', async () => {
    const redis = await startTlsRedis();
    onTestFinished(() => redis.stop());
    const named = await startUntilNamed({ kind: 'redis', url: redis.url.replace('rediss:', 'redis:') });
    expect(named).toMatchObject({ level: WARNING, reason: 'disconnected' });
  });

  it('a port that accepts and closes', async () => {
    const { url } = await serve((socket) => socket.end());
    const named = await startUntilNamed({ kind: 'redis', url });
    expect(named).toMatchObject({ level: WARNING, reason: 'disconnected' });
    expect(named.problem).toMatch(/closed before any answer|ECONNRESET|EPIPE/);
  });

  it('a Sentinel that names a replica', async () => {
    const { name, sentinelUrls, primary, replica, stop } = await startSentinel(60_000);
    onTestFinished(stop);
    const client = new Redis(primary.port);
    onTestFinished(() => client.disconnect());
    await client.replicaof('127.0.0.1', replica.port);
    const named = await startUntilNamed({ kind: 'sentinel', sentinels: sentinelUrls, name });
    expect(named).toMatchObject({ level: WARNING, reason: 'disconnected' });
    expect(named.problem).toContain('the server that a Sentinel names is a replica');
  });

  it('a Redis with too many clients', async () => {
    const redis = await startRedisServer({ args: ['--maxclients', '1'] });
    onTestFinished(() => redis.stop());
    const onlyClient = connect(redis.port, '127.0.0.1');
    onTestFinished(() => void onlyClient.destroy());
    await once(onlyClient.setEncoding('utf8'), 'connect');
    onlyClient.write('PING\r\n');
    await once(onlyClient, 'data');
    const named = await startUntilNamed({ kind: 'redis', url: redis.url });
    expect(named).toMatchObject({ level: WARNING, reason: 'maxclients' });
  });
});

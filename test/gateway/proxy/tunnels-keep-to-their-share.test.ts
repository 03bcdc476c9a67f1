import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { apiFolder, openapi } from '../../fixtures/api-files.ts';
import { newCertificate } from '../../fixtures/certificate.ts';
import { startGateway, type TestGateway } from '../../fixtures/gateway.ts';
import { sendRaw } from '../../fixtures/raw.ts';
import { handshake, startTunnelUpstream, type TunnelUpstream } from '../../fixtures/tunnels.ts';

const PATHS = `/public: { get: { security: [] } }
/free: { get: { security: [], x-weir: { cost: 0 } } }
/closed: { get: {} }`;

const CALLER = ['Authorization: Bearer service'];
const LIMITS = {
  windowSeconds: 60,
  defaults: { 'account-read': 1000, 'organization-read': 1000, 'address-read': 1000 },
};

/** Of ten connections, five are for tunnels: two of these for public operations, and one for free operations. */
const SHARES = { connections: 10, publicPercent: 50, unauthenticatedPercent: 20, tunnelPercent: 50 };

interface Started {
  readonly gateway: TestGateway;
  readonly upstream: TunnelUpstream;
}

async function start(listen: object, shares: object = SHARES): Promise<Started> {
  const upstream = await startTunnelUpstream();
  const folder = await apiFolder({ 'openapi.yaml': openapi(PATHS) });
  onTestFinished(() => folder.remove());
  const gateway = await startGateway({
    upstream,
    limits: LIMITS,
    settings: {
      listen,
      operations: { openapi: join(folder.path, 'openapi.yaml') },
      upstream: { url: upstream.url, ...shares },
      shutdown: { graceSeconds: 0 },
    },
  });
  onTestFinished(() => gateway.close());
  return { gateway, upstream };
}

async function statusesOf(url: string, path: string, count: number, lines: readonly string[] = []) {
  const statuses: number[] = [];
  for (let done = 0; done < count; done++) statuses.push((await handshake(url, path, lines)).status);
  return statuses;
}

/** The status of a request on a connection of its own. */
async function get(url: string, path: string, lines: readonly string[] = []): Promise<number[]> {
  const fields = ['Host: weir', 'Connection: close', ...lines].join('\r\n');
  return (await sendRaw(url, `GET ${path} HTTP/1.1\r\n${fields}\r\n\r\n`)).statuses;
}

async function metric(gateway: TestGateway, name: string): Promise<number> {
  const line = (await gateway.metrics()).split('\n').find((one) => one.startsWith(`${name} `));
  return Number(line?.split(' ')[1] ?? Number.NaN);
}

const times = (status: number, count: number) => Array.from({ length: count }, () => status);

describe.each([
  ['plain', {}],
  ['TLS', { tls: newCertificate() }],
])('over %s', (_, listen) => {
  it('tunnels of callers hold no more than their share, and the others are refused without a charge', async () => {
    const { gateway, upstream } = await start(listen);
    expect(await statusesOf(gateway.url, '/closed', 8, CALLER)).toEqual([...times(101, 5), ...times(503, 3)]);
    expect(upstream.open()).toBe(5);
    const { head } = await handshake(gateway.url, '/closed', CALLER);
    expect(head).toContain('application/problem+json');
    expect(head).not.toMatch(/^ratelimit:|^retry-after:/m);
    // Five handshakes were charged, and these requests.
    const answers = await sendRaw(
      gateway.url,
      `GET /closed HTTP/1.1\r\nHost: weir\r\n${CALLER[0]}\r\nConnection: close\r\n\r\n`,
    );
    expect(answers.statuses).toEqual([200]);
    expect(answers.text).toContain('"account-read";r=994');
    expect(await metric(gateway, 'weir_tunnels{traffic="caller"}')).toBe(5);
    await expect.poll(() => metric(gateway, 'weir_tunnels_refused_total')).toBe(4);
  });

  it('a tunnel that has closed makes room for another', async () => {
    const { gateway, upstream } = await start(listen);
    expect(await statusesOf(gateway.url, '/closed', 5, CALLER)).toEqual(times(101, 5));
    upstream.tunnels[2]?.destroy();
    await expect.poll(() => metric(gateway, 'weir_tunnels{traffic="caller"}')).toBe(4);
    expect(await statusesOf(gateway.url, '/closed', 2, CALLER)).toEqual([101, 503]);
    expect(upstream.open()).toBe(5);
  });

  it('tunnels of strangers count into the share of strangers, and leave room for their requests and for callers', async () => {
    const { gateway, upstream } = await start(listen);
    expect(await statusesOf(gateway.url, '/public', 4)).toEqual([101, 101, 503, 503]);
    expect(await statusesOf(gateway.url, '/free', 2)).toEqual([101, 503]);
    expect(await get(gateway.url, '/public')).toEqual([200]);
    expect(await get(gateway.url, '/free')).toEqual([200]);
    expect(await statusesOf(gateway.url, '/closed', 3, CALLER)).toEqual([101, 101, 503]);
    expect(await get(gateway.url, '/closed', CALLER)).toEqual([200]);
    expect(upstream.open()).toBe(5);
    expect(await metric(gateway, 'weir_tunnels{traffic="public"}')).toBe(2);
    expect(await metric(gateway, 'weir_tunnels{traffic="uncharged"}')).toBe(1);
  });

  it('60 handshakes at once open no more than the share', async () => {
    const { gateway, upstream } = await start(listen);
    const answers = await Promise.all(
      Array.from({ length: 60 }, () => handshake(gateway.url, '/closed', CALLER)),
    );
    expect(answers.filter(({ status }) => status === 101)).toHaveLength(5);
    expect(answers.filter(({ status }) => status === 503)).toHaveLength(55);
    expect(upstream.tunnels).toHaveLength(5);
    expect(await get(gateway.url, '/closed', CALLER)).toEqual([200]);
  });
});

it('tunnels may have all connections that their payer may have, and then a request waits for one', async () => {
  const { gateway, upstream } = await start({}, { connections: 3, tunnelPercent: 70 });
  expect(await statusesOf(gateway.url, '/closed', 3, CALLER)).toEqual([101, 101, 503]);
  const waiting = gateway.send('GET', '/closed');
  await gateway.metrics();
  expect(upstream.seen).toEqual([]);
  upstream.tunnels[0]?.destroy();
  expect((await waiting).status).toBe(200);
});

it('a share of one connection has no room for a tunnel, because a tunnel would keep requests out of it', async () => {
  const { gateway } = await start({}, { ...SHARES, publicPercent: 10, unauthenticatedPercent: 10 });
  expect((await handshake(gateway.url, '/public')).status).toBe(503);
  expect((await handshake(gateway.url, '/free')).status).toBe(503);
  expect(await get(gateway.url, '/public')).toEqual([200]);
});

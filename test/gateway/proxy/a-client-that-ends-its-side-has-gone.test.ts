import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { newCertificate } from '../../fixtures/certificate.ts';
import { PLENTY } from '../../fixtures/configuration.ts';
import { startGateway } from '../../fixtures/gateway.ts';
import { connectRaw } from '../../fixtures/raw.ts';
import { startTcpUpstream } from '../../fixtures/tcp-upstream.ts';
import { HANDSHAKE } from '../../fixtures/tunnels.ts';
import { startUpstream } from '../../fixtures/upstream.ts';

const GET = 'GET /v3/things HTTP/1.1\r\nHost: weir\r\nAuthorization: Bearer service\r\n\r\n';

it('clients that end their side leave the upstream, and those that wait never reach it', async () => {
  const held = new Set<ServerResponse>();
  const upstream = await startUpstream((_, response) => {
    held.add(response);
    response.once('close', () => held.delete(response));
  });
  const gateway = await startGateway({
    upstream,
    limits: PLENTY,
    settings: { upstream: { url: upstream.url, connections: 1 } },
  });
  onTestFinished(() => gateway.close());
  const [first, ...others] = await Promise.all(Array.from({ length: 6 }, () => connectRaw(gateway.url)));
  first?.write(GET);
  await expect.poll(() => held.size).toBe(1);
  for (const socket of others) socket.write(GET);
  for (const socket of others) socket.end();
  const ended = async () =>
    (await gateway.metrics()).match(/weir_requests_read_total\{reader="edge"\} (\d+)/)?.[1];
  await expect.poll(ended).toBe('5');
  expect(upstream.seen).toHaveLength(1);
  first?.end();
  await expect.poll(() => held.size).toBe(0);
  expect(upstream.seen).toHaveLength(1);
});

it.each([
  ['plain', {}],
  ['TLS', { tls: newCertificate() }],
])('so has one that has asked for a WebSocket and still waits: %s', async (_, listen) => {
  const behind: Socket[] = [];
  const upstream = await startTcpUpstream((socket) => behind.push(socket.resume()));
  const gateway = await startGateway({
    upstream,
    limits: PLENTY,
    settings: {
      listen: { host: '127.0.0.1', port: 0, ...listen },
      // One place for this client and one for others, and tunnels may have both.
      upstream: { url: upstream.url, connections: 2, tunnelPercent: 100, queueTimeoutMs: 60_000 },
    },
  });
  onTestFinished(() => gateway.close());
  const ask = async () => {
    const socket = await connectRaw(gateway.url);
    socket
      .resume()
      .write(`GET /v3/things HTTP/1.1\r\n${HANDSHAKE.join('\r\n')}\r\nAuthorization: Bearer service\r\n\r\n`);
    return socket;
  };
  const queued = async () => (await gateway.metrics()).match(/^weir_upstream_queued(?:\{.*\})? (\d+)$/m)?.[1];
  const sent = await ask();
  await expect.poll(() => behind.length).toBe(1);
  const waiting = await ask();
  await expect.poll(queued).toBe('1');
  waiting.end();
  await expect.poll(queued).toBe('0');
  sent.end();
  await expect.poll(() => behind[0]?.closed).toBe(true);
  expect(behind).toHaveLength(1);
});

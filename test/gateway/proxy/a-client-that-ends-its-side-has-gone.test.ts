import type { ServerResponse } from 'node:http';
import { expect, it, onTestFinished } from 'vitest';
import { PLENTY } from '../../fixtures/configuration.ts';
import { startGateway } from '../../fixtures/gateway.ts';
import { connectRaw } from '../../fixtures/raw.ts';
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

import type { AddressInfo } from 'node:net';
import { createConnection, createServer, type Server, type Socket } from 'node:net';
import { it } from 'vitest';
import { listLimits } from '../../../src/commands/limit/limit.ts';
import { startRedisServer } from '../../fixtures/redis-server.ts';
import { uniquePrefix } from '../../fixtures/redis-url.ts';
import { runHere } from '../../fixtures/run-here.ts';
import { startUpstream } from '../../fixtures/upstream.ts';
import { startWeir, type WeirProcess } from '../../fixtures/weir-process.ts';
import { headlineOf, SOON, useConsole } from './use-console.ts';

// Each test waits for ten seconds or so until figures are too old, so they wait at the same time.
const { startReplicas, open, atEnd } = useConsole('file');

/** One address for all replicas, like the address of a load balancer: each connection goes to the first that accepts it. */
async function startBalancer(replicas: readonly WeirProcess[]): Promise<string> {
  const ports = replicas.map(({ adminUrl }) => Number(new URL(adminUrl).port));
  const forward = (client: Socket, [port, ...others]: readonly number[]): void => {
    if (port === undefined) {
      client.destroy();
      return;
    }
    const server = createConnection(port, '127.0.0.1');
    let isConnected = false;
    server.on('error', () => (isConnected ? client.destroy() : forward(client, others)));
    server.on('connect', () => {
      isConnected = true;
      client.pipe(server).pipe(client);
      server.on('close', () => client.destroy());
    });
    client.on('close', () => server.destroy());
  };
  const balancer: Server = createServer((client) => {
    client.on('error', () => client.destroy());
    forward(client, ports);
  });
  await new Promise<void>((resolve) => balancer.listen(0, '127.0.0.1', resolve));
  atEnd(() => balancer.close());
  return `http://127.0.0.1:${(balancer.address() as AddressInfo).port}`;
}

it.concurrent('a page whose replica is killed says so, finds another at its address, and says when no replica is left', async ({
  expect,
}) => {
  const redis = await startRedisServer();
  atEnd(() => redis.stop());
  const upstream = await startUpstream();
  atEnd(() => upstream.close());
  const settings = { admin: { host: '127.0.0.1', port: 0 } };
  const store = { kind: 'redis', url: redis.url, keyPrefix: uniquePrefix() };
  const startOne = async () => {
    const weir = await startWeir({ upstreamUrl: upstream.url, store, settings });
    atEnd(() => weir.close());
    return weir;
  };
  const replicas = [await startOne(), await startOne()];
  const { page } = await open({ adminUrl: await startBalancer(replicas) });
  await expect.poll(() => page.locator('#replicas tbody tr').count(), SOON).toBe(2);
  replicas[0]?.process.kill('SIGKILL');
  // The headline says so until somebody has seen it, although the other replica is healthy. A busy machine may have lost the store too.
  const lost = /^Lost: .*\S since .+/;
  await expect.poll(() => headlineOf(page), SOON).toMatch(lost);
  await expect.poll(() => page.locator('#connection').textContent(), SOON).toBe('live');

  // One that hangs says nothing at all.
  replicas[1]?.process.kill('SIGSTOP');
  atEnd(() => replicas[1]?.process.kill('SIGCONT'));
  await expect
    .poll(() => headlineOf(page), SOON)
    .toMatch(/^The connection is lost: everything here is unknown since [\d:]{8}$/);
  // Another page, and back, draws what came last.
  await page.evaluate("location.hash = '#/find/acct_1'");
  await page.locator('#owner').waitFor();
  await page.evaluate("location.hash = '#/'");
  await page.locator('#overview').waitFor();
  await page.evaluate(
    'new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(() => drawn(undefined))))',
  );
  expect(await headlineOf(page)).toMatch(/^The connection is lost/);
  const marks = () =>
    page.evaluate<string[]>(
      "[...document.querySelectorAll('#overview .panel')].map((panel) => String(panel.dataset.unknown))",
    );
  await expect
    .poll(async () => [...new Set((await marks()).map((mark) => mark.replace(/[\d:]{8}/, 'T')))], SOON)
    .toEqual(['unknown since T']);
  expect(await page.locator('#connection').textContent()).toMatch(/^unknown since/);
  replicas[1]?.process.kill('SIGCONT');
  await expect.poll(() => headlineOf(page), SOON).toMatch(lost);
  await expect.poll(() => page.locator('[data-unknown]').count(), SOON).toBe(0);
});

it.concurrent('while an Account is open, a lost connection is said, and then the overview says that its figures are old', async ({
  expect,
}) => {
  const upstream = await startUpstream();
  atEnd(() => upstream.close());
  const weir = await startWeir({
    upstreamUrl: upstream.url,
    settings: { admin: { host: '127.0.0.1', port: 0 } },
  });
  atEnd(() => weir.close());
  const { page } = await open(weir);
  await page.locator('#overview').waitFor();
  await page.evaluate("location.hash = '#/account/acct_1'");
  await page.getByText('None that a replica remembers.').waitFor();

  weir.process.kill('SIGSTOP');
  atEnd(() => weir.process.kill('SIGCONT'));
  await expect.poll(() => page.locator('#connection').textContent(), SOON).toMatch(/^unknown since/);
  await page.evaluate("location.hash = '#/'");
  await page.locator('#overview').waitFor();
  await expect
    .poll(() => page.locator('#headline').textContent(), SOON)
    .toMatch(/^The connection is lost: .* unknown since/);
  expect(await page.locator('#overview [data-unknown]').count()).toBeGreaterThan(0);
  weir.process.kill('SIGCONT');
  await expect.poll(() => page.locator('#connection').textContent(), SOON).toBe('live');
  await expect.poll(() => page.locator('#overview [data-unknown]').count(), SOON).toBe(0);
});

it.concurrent('a list that the page was never sent is unknown since the page was opened', async ({
  expect,
}) => {
  const { gateways } = await startReplicas();
  const { page } = await open(gateways[0]);
  await page.route('**/limits/live', () => undefined);
  await page.reload();
  for (const panel of ['#live-limits', '#revocations'])
    await expect
      .poll(() => page.locator(panel).getAttribute('data-unknown'), SOON)
      .toMatch(/^unknown since [\d:]{8}$/);
  for (const panel of ['#live-limits', '#revocations'])
    expect(await page.locator(`${panel} .empty`).isVisible()).toBe(false);
  await expect.poll(() => headlineOf(page), SOON).toBe('All 3 replicas are healthy');
});

it.concurrent('lists that were not read from Redis for two periods are grey, and their age is in the answer', async ({
  expect,
}) => {
  const { redis, gateways } = await startReplicas();
  const [{ adminUrl }] = gateways;
  const agesOf = () =>
    Promise.all(
      ['limits/live', 'blocks', 'revocations'].map(async (path) =>
        Number((await fetch(`${adminUrl}/${path}`)).headers.get('age')),
      ),
    );
  expect(Math.max(...(await agesOf()))).toBeLessThanOrEqual(10);
  const { page } = await open(gateways[0]);
  await page.locator('#revocations h2').waitFor();
  await redis.kill();
  await expect.poll(async () => Math.min(...(await agesOf())), SOON).toBeGreaterThan(10);
  for (const panel of ['#live-limits', '#revocations'])
    await expect
      .poll(() => page.locator(panel).getAttribute('data-unknown'), SOON)
      .toMatch(/^unknown since [\d:]{8}$/);
  const { stderr } = await runHere(() => listLimits({ url: adminUrl }));
  expect(stderr).toMatch(/^Changes of the last \d+ s are unknown: http:.* could not read Redis\.\n$/);
});

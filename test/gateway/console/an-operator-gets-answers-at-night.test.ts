import { readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { setLimit } from '../../../src/commands/limit/limit.ts';
import { revoke } from '../../../src/commands/revoke.ts';
import { top } from '../../../src/commands/top.ts';
import { usage } from '../../../src/commands/usage.ts';
import { sendTo, startGateway, type TestGateway } from '../../fixtures/gateway.ts';
import { startRedisServer } from '../../fixtures/redis-server.ts';
import { uniquePrefix } from '../../fixtures/redis-url.ts';
import { runHere } from '../../fixtures/run-here.ts';
import { useConsole } from './use-console.ts';

const { open } = useConsole();

/** An operator waits no longer for an answer. */
const TEN_SECONDS = { timeout: 10_000, interval: 100 };

/** Three replicas, each with files of its own. */
async function startReplicas() {
  const redis = await startRedisServer();
  onTestFinished(() => redis.stop());
  const store = { kind: 'redis', url: redis.url, keyPrefix: uniquePrefix(), deadlineMs: 5_000 };
  const settings = { admin: { host: '127.0.0.1', port: 0 } };
  const limits = { organizations: { org_1: { 'organization-write': 25 } } };
  const startOne = async () => {
    const gateway = await startGateway({ store, settings, limits });
    onTestFinished(() => gateway.close());
    return gateway;
  };
  return { redis, replicas: [await startOne(), await startOne(), await startOne()] as const };
}

/** Sends requests to the replicas in turn, and counts the answers by their status. */
async function send(
  replicas: readonly TestGateway[],
  count: number,
  request: { readonly method?: string; readonly token: string },
) {
  const statuses: Record<number, number> = {};
  for (let sent = 0; sent < count; sent++) {
    const replica = replicas[sent % replicas.length];
    const { method = 'GET', token } = request;
    const { status } = await sendTo(String(replica?.url), method, '/v3/things', { token });
    statuses[status] = (statuses[status] ?? 0) + 1;
  }
  return statuses;
}

it('a flood, an empty Organization, a leaked token, a doubled limit and price, and no Redis: each shows within ten seconds', async () => {
  const { redis, replicas } = await startReplicas();
  const [first] = replicas;
  const { adminUrl: url, settingsFile: config } = first;
  const { page } = await open(first);
  const text = (selector: string) => page.locator(selector).textContent();
  const printed = async (command: () => Promise<void>) => (await runHere(command)).stdout;
  await expect.poll(() => text('#headline'), TEN_SECONDS).toBe('All 3 replicas are healthy');
  await page.locator('#window input[value="10m"]').check();

  // A flood: 20 of 60 reads fit the limit of Account acct_3.
  expect(await send(replicas, 60, { token: 'lonely' })).toEqual({ 200: 20, 429: 40 });
  await expect.poll(() => text('#headline'), TEN_SECONDS).toMatch(/^acct_3 causes 100\u00a0% of refusals: /);
  const flooded = page.locator('#accounts tbody tr', { hasText: 'acct_3' });
  await expect.poll(() => flooded.locator('td').last().textContent(), TEN_SECONDS).toBe('40 · 67\u00a0%');
  await expect
    .poll(() => printed(() => top({ url, window: '10m', once: true })), TEN_SECONDS)
    .toMatch(/3 replicas, by refused, then points\n\nAccount.*\nacct_3 +20 +60 +40\n/);

  // Two Accounts empty the bucket of their Organization: 25 points.
  expect(await send(replicas, 20, { method: 'POST', token: 'service' })).toEqual({ 200: 20 });
  const others = await send(replicas, 45, { method: 'POST', token: 'other' });
  expect(others).toEqual({ 200: 5, 429: 40 });
  await page.evaluate("location.hash = '#/organization/org_1'");
  const bucket = page.locator('[data-bucket=organization-write]');
  await expect.poll(() => bucket.textContent(), TEN_SECONDS).toMatch(/none left.*0 of 25 points left/);
  await expect
    .poll(() => printed(() => usage('org_1', { url, scope: 'organization' })), TEN_SECONDS)
    .toMatch(/acct_1 +20 +20 +0\n[\s\S]*from all 3 replicas/);

  // A doubled limit.
  await page.evaluate("location.hash = '#/'");
  await runHere(() => setLimit('acct_3', ['account-read=40'], { url, why: 'doubled', for: '1h' }));
  await expect.poll(() => text('#live-limits tbody'), TEN_SECONDS).toMatch(/acct_3account-read40/);
  await expect
    .poll(() => text('#changes tbody'), TEN_SECONDS)
    .toContain('limits.changedacct_3: account-read 20 -> 40 ');
  await expect
    .poll(async () => (await send(replicas, 3, { token: 'lonely' }))[200] ?? 0, TEN_SECONDS)
    .toBeGreaterThan(0);

  // A leaked token.
  await runHere(() => revoke([], { config, token: 'person' }));
  await expect.poll(() => send(replicas, 3, { token: 'person' }), TEN_SECONDS).toEqual({ 401: 3 });
  await expect
    .poll(() => text('#revocations tbody'), TEN_SECONDS)
    .toMatch(/sha256:[0-9a-f]{16}token.*ago from 127\.0\.0\.1/);
  await expect
    .poll(() => printed(() => revoke([], { config, list: true })), TEN_SECONDS)
    .toMatch(/, last tried \S+Z from 127\.0\.0\.1\n/);

  // A doubled price.
  for (const { settingsFile } of replicas) {
    const file = join(dirname(settingsFile), 'openapi.yaml');
    const document = await readFile(file, 'utf8');
    const changed = document.replace(
      '"operationId": "listThings",\n        "x-weir": {}',
      '"operationId": "listThings",\n        "x-weir": {"cost": 2}',
    );
    expect(changed).not.toBe(document);
    await writeFile(file, changed);
  }
  await expect
    .poll(() => text('#changes tbody'), TEN_SECONDS)
    .toMatch(/operations\.changedlistThings: listThings 1 points? -> 2 points/);
  await page.evaluate("location.hash = '#/operations'");
  const priced = page.locator('#operation-list tbody tr', { hasText: 'listThings' });
  await expect.poll(() => priced.textContent(), TEN_SECONDS).toContain('/v3/things2read');

  // Redis is dead.
  await page.evaluate("location.hash = '#/'");
  await redis.kill();
  await expect.poll(() => text('#headline'), TEN_SECONDS).toMatch(/^The store does not answer/);
  expect(await send(replicas, 3, { token: 'service' })).toEqual({ 200: 3 });
  await expect
    .poll(() => printed(() => usage('acct_1', { url })), TEN_SECONDS)
    .toContain('The store could not be read: disconnected. What is used is unknown.');
});

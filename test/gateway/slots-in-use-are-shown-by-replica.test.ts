import type { ServerResponse } from 'node:http';
import { hostname } from 'node:os';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { Usage } from '../../src/admin/usage/owner-usage.ts';
import { explain } from '../../src/commands/costs/explain.ts';
import { usage } from '../../src/commands/usage.ts';
import type { OwnUsageAnswer } from '../../src/gateway/usage/own-usage-answer.ts';
import { writeConfiguration } from '../fixtures/configuration.ts';
import { startGateway, type TestGateway } from '../fixtures/gateway.ts';
import { uniqueRedisStore } from '../fixtures/redis-url.ts';
import { runHere } from '../fixtures/run-here.ts';
import { startUpstream } from '../fixtures/upstream.ts';

const SOON = { timeout: 20_000, interval: 50 };
const PATH = '/.well-known/rate-limits';
const SETTINGS = { usage: { path: PATH, requestsPerMinute: 1_000 } };
const LIMITS = { limits: { 'in-flight': { per: 'account', concurrent: 9, operations: ['reportRead'] } } };
const BUDGET = { 'account-read': 1_000, 'organization-read': 1_000 };

/** Replicas that share a store, each with so many requests in flight. */
async function startReplicas(store: object, held: readonly number[]): Promise<TestGateway[]> {
  const gateways: TestGateway[] = [];
  for (const count of held) {
    const waiting: ServerResponse[] = [];
    const upstream = await startUpstream((_, response) => waiting.push(response));
    const limits = { ...LIMITS, defaults: BUDGET };
    const gateway = await startGateway({ store: { ...store }, settings: SETTINGS, limits, upstream });
    onTestFinished(() => gateway.close());
    const sent = Promise.allSettled(Array.from({ length: count }, () => gateway.send('GET', '/v3/reports')));
    onTestFinished(async () => {
      for (const response of waiting) response.end();
      await sent;
    });
    await vi.waitFor(() => expect(waiting).toHaveLength(count), SOON);
    gateways.push(gateway);
  }
  return gateways;
}

async function read(gateway: TestGateway): Promise<Usage['buckets'][number] | undefined> {
  const shown = (await (await fetch(`${gateway.adminUrl}/usage/accounts/acct_1`)).json()) as Usage;
  return shown.buckets.find(({ bucket }) => bucket === 'in-flight');
}

/** One of these replicas, which all run on this machine. */
const share = (inFlight: number) => ({ replica: expect.any(String), name: hostname(), inFlight });

it('usage at each replica has the slots of all of them, and a caller sees the sum alone', async () => {
  const store = uniqueRedisStore();
  const gateways = await startReplicas(store, [1, 3, 0]);
  for (const gateway of gateways) {
    await expect
      .poll(() => read(gateway), SOON)
      .toMatchObject({ limit: 9, used: 4, inFlight: 4, remaining: 5, byReplica: [share(3), share(1)] });
    const readOwn = async () => (await (await gateway.send('GET', PATH)).json()) as OwnUsageAnswer;
    const slotsOf = ({ buckets }: OwnUsageAnswer) => buckets.find(({ bucket }) => bucket === 'in-flight');
    await expect
      .poll(async () => slotsOf(await readOwn()), SOON)
      .toMatchObject({ inFlight: 4, remaining: 5 });
    const own = await readOwn();
    const limit = slotsOf(own);
    expect(JSON.stringify(own)).not.toContain(hostname());
    expect(limit).not.toHaveProperty('byReplica');
  }
  const ids = (await read(gateways[0] as TestGateway))?.byReplica?.map(({ replica }) => replica);
  expect(new Set(ids).size).toBe(2);
  await gateways[1]?.close();
  await expect.poll(() => read(gateways[0] as TestGateway), SOON).toMatchObject({ byReplica: [share(1)] });
});

it('without another replica, usage has the slots of the only one', async () => {
  const [gateway] = await startReplicas({}, [2]);
  expect(await read(gateway as TestGateway)).toMatchObject({ inFlight: 2, byReplica: [share(2)] });
});

it('limits on points have no such members, and what Redis does not answer is null', async () => {
  const [gateway] = await startReplicas({ kind: 'redis', url: 'redis://127.0.0.1:1' }, [0]);
  expect(await read(gateway as TestGateway)).toMatchObject({ inFlight: null, byReplica: null });
  const shown = (await (await fetch(`${gateway?.adminUrl}/usage/accounts/acct_1`)).json()) as Usage;
  expect(shown.buckets[0]).not.toHaveProperty('inFlight');
  expect(shown.buckets[0]).not.toHaveProperty('byReplica');
});

describe('the commands', () => {
  it('weir usage and weir explain name the replicas', async () => {
    const store = uniqueRedisStore();
    const [gateway] = await startReplicas(store, [1, 2]);
    const shown = `in-flight: 3 in flight (${hostname()}: 2, ${hostname()}: 1)`;
    await expect
      .poll(async () => (await runHere(() => usage('acct_1', { url: gateway?.adminUrl ?? '' }))).stdout, SOON)
      .toContain(`\n${shown}\n`);
    const config = await writeConfiguration({ upstreamUrl: 'http://127.0.0.1:2', store, limits: LIMITS });
    const asked = { config, token: 'service' };
    const text = await runHere(() => explain('GET', '/v3/reports', asked));
    expect(text.stdout).toContain(
      `in-flight of acct_1: 9 concurrent requests, 3 in flight (${hostname()}: 2, ${hostname()}: 1)\n`,
    );
    const { stdout } = await runHere(() => explain('GET', '/v3/reports', { ...asked, json: true }));
    expect(JSON.parse(stdout).buckets).toContainEqual(
      expect.objectContaining({ bucket: 'in-flight', inFlight: 3, byReplica: [share(2), share(1)] }),
    );
  });

  it('weir explain does without the slots where no other process shares the store', async () => {
    const config = await writeConfiguration({ upstreamUrl: 'http://127.0.0.1:2', limits: LIMITS });
    const { stdout } = await runHere(() => explain('GET', '/v3/reports', { config, token: 'service' }));
    expect(stdout).toMatch(/in-flight of acct_1: 9 concurrent requests\n/);
  });
});

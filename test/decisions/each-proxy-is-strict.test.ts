import { randomUUID } from 'node:crypto';
import { Agent, request } from 'node:http';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { RunningGateway } from '../../src/process/run.ts';
import type { ListeningProcess } from '../fixtures/listening-process.ts';
import { startProxy } from '../fixtures/proxies.ts';
import { PROXIES } from '../fixtures/proxy-recipes.ts';
import { startRecipe } from '../fixtures/recipes.ts';
import { sharedRedisUrl } from '../fixtures/redis-url.ts';
import { startUpstream, type TestUpstream } from '../fixtures/upstream.ts';
import { describeProxy } from './describe-proxy.ts';

const LIMIT = 50;
const WINDOW_MS = 1_000;
const REPLICAS = 3;
/** At four times the limit, across the end of a window. */
const REQUESTS = 4 * LIMIT * 1.6;
const PAUSE_MS = WINDOW_MS / (4 * LIMIT);

const LIMITS = `windowSeconds: ${WINDOW_MS / 1000}
defaults: { account-read: ${LIMIT}, account-write: 10, organization-read: 100000, organization-write: 10 }
`;

interface Sample {
  readonly status: number;
  readonly sentMs: number;
  readonly answeredMs: number;
}

for (const proxy of PROXIES.filter(({ balances }) => balances)) {
  describeProxy(proxy, () => {
    let upstream: TestUpstream;
    let weirs: RunningGateway[];
    let running: ListeningProcess;
    beforeAll(async () => {
      upstream = await startUpstream();
      const env = {
        WEIR_REDIS_URL: sharedRedisUrl(),
        WEIR_STORE_KEY_PREFIX: `test-${randomUUID()}`,
        WEIR_STORE_DEADLINE_MS: '5000',
      };
      const change = { files: { 'limits.yaml': LIMITS }, env };
      weirs = await Promise.all(
        Array.from({ length: REPLICAS }, () => startRecipe(`proxies/${proxy.name.toLowerCase()}`, change)),
      );
      running = await startProxy(
        proxy,
        upstream.url,
        weirs.map(({ decisionsUrl }) => decisionsUrl ?? ''),
      );
    });
    afterAll(async () => {
      await running.close();
      await Promise.all(weirs.map((weir) => weir.close()));
      await upstream.close();
    });

    it(`admits at most ${LIMIT} of an Account in any second, with three Weirs`, async () => {
      const samples = await flood(running.url);
      const admitted = samples.filter(({ status }) => status === 200);
      expect([...new Set(samples.map(({ status }) => status))].toSorted()).toEqual([200, 429]);
      expect(upstream.seen).toHaveLength(admitted.length);
      expect(mostInOneWindow(admitted)).toBeLessThanOrEqual(LIMIT);
      // A machine that stalls may send everything within one window.
      expect(admitted.length).toBeGreaterThanOrEqual(LIMIT);
      for (const weir of weirs) expect(await decisionsOf(weir)).toBeGreaterThan(0);
    });

    it('soon asks only those Weirs that are up', async () => {
      await Promise.all(weirs.slice(1).map((weir) => weir.close()));
      const agent = new Agent({ keepAlive: true });
      for (let decided = 0; decided < 5 * REPLICAS; ) {
        const { status } = await sendOne(running.url, agent);
        decided = status === 503 ? 0 : decided + 1;
      }
      agent.destroy();
    });
  });
}

/** Sends requests at their times, whether or not earlier ones are answered. */
async function flood(url: string): Promise<Sample[]> {
  const agent = new Agent({ keepAlive: true, maxSockets: 64 });
  const startMs = performance.now();
  const pending: Promise<Sample>[] = [];
  await new Promise<void>((resolve) => {
    const timer = setInterval(() => {
      const due = Math.min(REQUESTS, Math.ceil((performance.now() - startMs) / PAUSE_MS));
      while (pending.length < due) pending.push(sendOne(url, agent));
      if (due < REQUESTS) return;
      clearInterval(timer);
      resolve();
    }, 5);
  });
  const samples = await Promise.all(pending);
  agent.destroy();
  return samples;
}

function sendOne(url: string, agent: Agent): Promise<Sample> {
  const sentMs = performance.now();
  const headers = { Authorization: 'Bearer alice-token' };
  return new Promise((resolve, reject) => {
    const call = request(`${url}/items`, { agent, headers }, (response) => {
      response.resume();
      response.once('end', () =>
        resolve({ status: response.statusCode ?? 0, sentMs, answeredMs: performance.now() }),
      );
    });
    call.once('error', reject).end();
  });
}

/** The most requests that were both sent and answered within one window: each of them was certainly charged in it. */
function mostInOneWindow(admitted: readonly Sample[]): number {
  const counts = admitted.map(
    ({ sentMs: startMs }) =>
      admitted.filter((one) => one.sentMs >= startMs && one.answeredMs <= startMs + WINDOW_MS).length,
  );
  return Math.max(...counts);
}

async function decisionsOf({ adminUrl }: RunningGateway): Promise<number> {
  const metrics = await (await fetch(`${adminUrl}/metrics`)).text();
  const counts = metrics.matchAll(/^weir_decisions_total\{.*outcome="(?:admitted|denied)"\} (\d+)$/gm);
  return [...counts].reduce((sum, [, count]) => sum + Number(count), 0);
}

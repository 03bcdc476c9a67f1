import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { writeSection } from '../../bench/report/section.ts';
import type { Namespace } from './commands.ts';
import {
  createEnvironment,
  gatewayPods,
  readmeInstall,
  removeEnvironment,
  scaleGateway,
  TOKEN,
} from './environment.ts';
import { degradedIn, last, type Progress, RATE_PER_SECOND, startLoad, URL, until } from './load.ts';
import { ask, type Probe } from './probe.ts';

let namespace: Namespace;
const rows: { event: string; sent: number; failed: number; degraded: number }[] = [];

beforeAll(async () => {
  namespace = await createEnvironment();
  await namespace.helm(
    ...readmeInstall(),
    '--wait',
    '--timeout=180s',
    '--set',
    'limits.defaults.account-read=100000',
  );
  // A pod is ready before the Service leads to it.
  await vi.waitFor(() => ask(namespace, URL, TOKEN), { timeout: 30_000, interval: 200 });
});
afterAll(async () => {
  await removeEnvironment(namespace);
  save();
});

/** Runs an event under load that lasts longer than it. */
async function underLoad(
  event: string,
  seconds: number,
  happen: (load: Probe) => Promise<unknown>,
): Promise<Progress> {
  const load = startLoad(namespace, TOKEN, RATE_PER_SECOND, seconds);
  await until(load, ({ sent }) => sent > RATE_PER_SECOND);
  await happen(load);
  const all = await last(load);
  rows.push({ event, sent: all.sent, failed: all.failed, degraded: degradedIn(all) });
  expect(all.failures, JSON.stringify(all.statuses)).toEqual([]);
  expect(all.failed).toBe(0);
  return all;
}

const rolledOut = () => namespace.kubectl('rollout', 'status', 'deployment/weir', '--timeout=180s');

/** What `kubectl drain` does with a pod; Kubernetes refuses it while the PodDisruptionBudget does not allow it. */
function evict(name: string): Promise<string> {
  const eviction = {
    apiVersion: 'policy/v1',
    kind: 'Eviction',
    metadata: { name, namespace: namespace.name },
  };
  const path = `/api/v1/namespaces/${namespace.name}/pods/${name}/eviction`;
  return namespace.create(path, JSON.stringify(eviction));
}

describe.sequential('no request fails while', () => {
  it('the pods are rolled', async () => {
    await underLoad('rollout restart', 60, async () => {
      await namespace.kubectl('rollout', 'restart', 'deployment/weir');
      await rolledOut();
    });
  });

  it('pods are evicted, as a drain of their nodes does', async () => {
    await underLoad('eviction of every pod, one after the other', 75, async () => {
      for (const { name } of await gatewayPods(namespace)) {
        await evict(name);
        await namespace.kubectl('wait', `pod/${name}`, '--for=delete', '--timeout=60s');
        await rolledOut();
      }
    });
  });

  it('the release grows to four pods and shrinks to one', async () => {
    await underLoad('scaled 2, 4, 1, 2', 75, async () => {
      for (const replicas of [4, 1, 2]) await scaleGateway(namespace, replicas);
    });
  });

  it('limits change', async () => {
    await underLoad('three changes of the limits by helm upgrade', 60, async () => {
      for (const limit of [100_001, 100_002, 100_003]) {
        const set = `limits.defaults.account-read=${limit}`;
        await namespace.helm('upgrade', 'weir', './helm/weir', '--reset-then-reuse-values', '--set', set);
      }
    });
  });

  it('the Redis is gone and comes back: requests are served degraded, then counted again', async () => {
    const all = await underLoad('Redis gone and back', 60, async (load) => {
      await namespace.kubectl('scale', 'deployment/redis', '--replicas=0');
      const gone = await until(load, (progress) => degradedIn(progress) > RATE_PER_SECOND);
      await namespace.kubectl('scale', 'deployment/redis', '--replicas=1');
      await namespace.kubectl('rollout', 'status', 'deployment/redis', '--timeout=60s');
      const counted = gone.statuses['200'] ?? 0;
      await until(load, ({ statuses }) => (statuses['200'] ?? 0) > counted + 3 * RATE_PER_SECOND);
    });
    expect(degradedIn(all)).toBeGreaterThan(RATE_PER_SECOND);
  });
});

/** `WEIR_WRITE_RESULTS=1` puts the table into bench/RESULTS.md. */
function save(): void {
  if (rows.length === 0) return;
  const table = [
    `${RATE_PER_SECOND} requests a second through the Service, half of them on new connections.`,
    '',
    '| event | requests | failed | served degraded |',
    '|---|--:|--:|--:|',
    ...rows.map(({ event, sent, failed, degraded }) => `| ${event} | ${sent} | ${failed} | ${degraded} |`),
  ].join('\n');
  console.log(table);
  if (process.env.WEIR_WRITE_RESULTS !== '1') return;
  const at = new Date().toISOString().slice(0, 16).replace('T', ' ');
  writeSection(
    'cluster-load',
    `### Under load on Kubernetes\n\n${at} UTC, \`npm run test:cluster\`.\n${table}`,
  );
}

import { startRedisServer } from '../../test/fixtures/redis-server.ts';
import type { Bench } from '../lab/bench.ts';
import { measureAccuracy } from './accuracy.ts';
import { measureCluster } from './cluster.ts';
import { measureFaults } from './faults.ts';
import { findLeastUseful } from './least-useful.ts';
import { measureScript } from './script-cost.ts';
import { measureThroughput } from './throughput.ts';

/** Measures how exact the counter is, and what it costs, beside what people would take instead. */
export async function measureCounter(bench: Bench): Promise<readonly string[]> {
  const { url } = bench.endWith(await startRedisServer());
  const parts: Readonly<Record<string, () => Promise<readonly string[]>>> = {
    accuracy: () => measureAccuracy(url, bench),
    'least-useful': () => findLeastUseful(bench.either(1, 0.1)),
    faults: () => measureFaults(),
    throughput: () => measureThroughput(url, bench),
    cluster: () => measureCluster(),
    script: () => measureScript(url, bench),
  };
  const lines = ['These machines are shared and noisy: compare figures of one table, not of two runs.'];
  for (const [name, measure] of Object.entries(parts))
    if (bench.includes(name)) lines.push('', ...(await measure()));
  return lines;
}

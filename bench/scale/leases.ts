import { setTimeout } from 'node:timers/promises';
import { US_PER_SECOND } from '../../src/domain/clock.ts';
import { Hold } from '../../src/store/in-flight/held-slots.ts';
import { bucketKey, SLOTS_ENDING } from '../../src/store/keys.ts';
import { openStore } from '../../src/store/open-store.ts';
import type { Charge, Store } from '../../src/store/store.ts';
import type { Bench } from '../lab/bench.ts';
import { cpuUs } from '../lab/process-table.ts';
import { table, thousands } from '../report/section.ts';

/** Each replica has a request in flight of every one of them. */
const OWNERS = 10_000;
const REPLICAS = [1, 10, 50];
const LIMIT = 1_000;
/** Requests that begin at once. */
const AT_ONCE = 100;

/** What the requests in flight of many replicas cost Redis while none of them begins or ends. */
export async function measureLeases(bench: Bench): Promise<readonly string[]> {
  const redis = await bench.startRedis();
  // Twice as long as a replica takes to state all its leases.
  const seconds = bench.either(60, 5);
  const stores: Store[] = [];
  const rows: string[][] = [];
  for (const replicas of REPLICAS) {
    while (stores.length < replicas) stores.push(await busyReplica(bench, redis.port));
    const [spentUs, startMs] = [cpuUs([redis.pid]), performance.now()];
    await setTimeout(seconds * 1_000);
    const share = (cpuUs([redis.pid]) - spentUs) / US_PER_SECOND / ((performance.now() - startMs) / 1_000);
    await assertCounted(stores);
    rows.push([thousands(replicas), thousands(replicas * OWNERS), `${(share * 100).toFixed(1)} %`]);
    bench.say(`  leases  ${rows.at(-1)?.join(' ')}`);
  }
  return [
    `CPU of Redis for requests in flight of ${thousands(OWNERS)} owners at each replica, while none begins or ends, over ${seconds} s. The aim is at most 20 %`,
    'of a core for the last row.',
    '',
    ...table(['replicas:', 'leases:', 'of a core:'], rows),
  ];
}

/** A replica with one request in flight of each owner. */
async function busyReplica(bench: Bench, port: number): Promise<Store> {
  const store = openStore({ kind: 'redis', url: `redis://127.0.0.1:${port}`, deadlineMs: 5_000 });
  bench.endWith({ stop: () => store.close() });
  while ((await store.peek(chargeOf(0))).outcome === 'uncounted') await setTimeout(10);
  for (let first = 0; first < OWNERS; first += AT_ONCE) {
    const charges = Array.from({ length: AT_ONCE }, (_, index) =>
      store.charge({ ...chargeOf(first + index), hold: new Hold() }),
    );
    for (const { outcome } of await Promise.all(charges))
      if (outcome !== 'admitted') throw new Error(`a request in flight was ${outcome}`);
  }
  return store;
}

function chargeOf(owner: number): Charge {
  const key = bucketKey('leases', `org_${owner}`, `in-flight${SLOTS_ENDING}`, `acct_${owner}`);
  return { buckets: [{ key, limit: LIMIT, windowSeconds: 0, counts: 'concurrent' }], cost: 1 };
}

/** @throws Error if Redis does not count a request of each replica for an owner */
async function assertCounted(stores: readonly Store[]): Promise<void> {
  for (const owner of [0, OWNERS - 1]) {
    const decision = await stores[0]?.peek(chargeOf(owner));
    const left = decision?.outcome === 'admitted' ? decision.buckets[0]?.remaining : undefined;
    if (left !== LIMIT - stores.length)
      throw new Error(`Redis has room for ${left} requests of an owner with ${stores.length} in flight`);
  }
}

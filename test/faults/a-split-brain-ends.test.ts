import { setTimeout as pause } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { expect, onTestFinished, test } from 'vitest';
import { bucketKey } from '../../src/store/keys.ts';
import { openStore } from '../../src/store/open-store.ts';
import type { Decision, Store } from '../../src/store/store.ts';
import { startRedisServer } from '../fixtures/redis-server.ts';
import { startTcpProxy } from '../fixtures/tcp-proxy.ts';

const LIMIT = 100;

function chargeOf(store: Store, id = 'a', limit = 1_000_000) {
  const buckets = [{ key: bucketKey('weir', 'a', 'account-read', id), limit, windowSeconds: 60 }];
  return store.charge({ buckets, cost: 1 });
}

async function until(store: Store, isMet: (decision: Decision) => boolean, id?: string): Promise<Decision> {
  for (;;) {
    const decision = await chargeOf(store, id);
    if (isMet(decision)) return decision;
    await pause(5);
  }
}

/**
 * A primary that needs a replica to write, and its replica behind a line that is cut while the replica is promoted: what
 * a Sentinel on the other side of a broken network does.
 */
test('a primary that is cut off from its replicas stops counting, so a split brain ends', async () => {
  const primary = await startRedisServer({
    args: ['--min-replicas-to-write', '1', '--min-replicas-max-lag', '1', '--repl-diskless-sync-delay', '0'],
  });
  const line = await startTcpProxy(primary.port);
  const replica = await startRedisServer({ args: ['--replicaof', '127.0.0.1', `${line.port}`] });
  const promoted = new Redis(replica.port);
  const [old, young] = [primary, replica].map(({ url }) =>
    openStore({ kind: 'redis', url, deadlineMs: 5000 }),
  );
  if (old === undefined || young === undefined) throw new Error('no stores');
  onTestFinished(async () => {
    promoted.disconnect();
    for (const store of [old, young]) await store.close();
    await line.stop();
    for (const server of [replica, primary]) await server.stop();
  });
  await until(old, ({ outcome }) => outcome === 'admitted', 'warm');

  line.set({ kind: 'black hole' });
  await promoted.replicaof('NO', 'ONE');
  await until(young, ({ outcome }) => outcome === 'admitted', 'warm');
  const refused = await until(old, ({ outcome }) => outcome === 'uncounted', 'beside');
  expect(refused).toEqual({ outcome: 'uncounted', reason: 'readonly' });

  const decisions: Decision[] = [];
  for (let turn = 0; turn < 2 * LIMIT; turn++) {
    for (const store of [old, young]) decisions.push(await chargeOf(store, 'a', LIMIT));
  }
  expect(decisions.filter(({ outcome }) => outcome === 'admitted')).toHaveLength(LIMIT);
});

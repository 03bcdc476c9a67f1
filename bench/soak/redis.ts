import { setTimeout as pause } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { argsOfReplica, startSentinel } from '../../test/fixtures/redis-sentinel.ts';
import type { RedisServer } from '../../test/fixtures/redis-server.ts';

/**
 * How long the primary is silent before another takes over. Replication may lose the last milliseconds before a crash. This is longer
 * than a window, so no window contains charges from before and after.
 */
const SILENT_MS = 2_000;
const GIVE_UP_MS = 60_000;

/** A primary with a replica, watched by a Sentinel. */
export interface ReplicatedRedis {
  /** The section of weir.yaml. */
  readonly store: object;
  /** Of the primary; 0 while there is none. */
  residentBytes(): Promise<number>;
  /**
   * Kills the primary, waits until the replica has taken over and Sentinel says so, and starts the killed one as its replica. Started
   * any sooner, it would count as a primary for those who still get its address: a split brain.
   */
  failOver(): Promise<void>;
  /** Kills both at once, and starts them empty after as long a silence. */
  loseEverything(): Promise<void>;
  stop(): Promise<void>;
}

export async function startReplicatedRedis(): Promise<ReplicatedRedis> {
  const { sentinelUrls, name, stop, ...servers } = await startSentinel(SILENT_MS);
  let { primary, replica } = servers;
  return {
    store: { kind: 'sentinel', sentinels: sentinelUrls, name },
    async residentBytes() {
      const url = `redis://127.0.0.1:${primary.port}`;
      const info = await ask(url, async (client) => client.info('memory')).catch(() => '');
      return Number(/^used_memory_rss:(\d+)/m.exec(info)?.[1] ?? 0);
    },
    async failOver() {
      await primary.kill();
      await until(async () => (await addressOf(sentinelUrls[0] ?? '', name)).endsWith(` ${replica.port}`));
      await primary.start();
      [primary, replica] = [replica, primary];
      await untilReplicating(replica);
    },
    async loseEverything() {
      await Promise.all([primary.kill(), replica.kill()]);
      await pause(SILENT_MS);
      await primary.start([]);
      await replica.start(argsOfReplica(primary));
      await untilReplicating(replica);
    },
    stop,
  };
}

async function untilReplicating({ port }: RedisServer): Promise<void> {
  await until(async () => {
    const info = await ask(`redis://127.0.0.1:${port}`, async (client) => client.info('replication'));
    return info.includes('master_link_status:up');
  });
}

/** Of the primary, as those get it who ask for it: `127.0.0.1 6379`. */
async function addressOf(sentinelUrl: string, name: string): Promise<string> {
  const answer = await ask(sentinelUrl, async (client) =>
    client.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', name),
  );
  return (answer as readonly string[]).join(' ');
}

/** Waits until it holds. A server that does not answer yet says no. */
async function until(holds: () => Promise<boolean>): Promise<void> {
  const giveUpMs = performance.now() + GIVE_UP_MS;
  while (!(await holds().catch(() => false))) {
    if (performance.now() > giveUpMs) throw new Error('Redis has not failed over');
    await pause(100);
  }
}

async function ask<T>(url: string, question: (client: Redis) => Promise<T>): Promise<T> {
  const client = new Redis(url, { maxRetriesPerRequest: 0, retryStrategy: () => null });
  client.on('error', () => undefined);
  try {
    return await question(client);
  } finally {
    client.disconnect();
  }
}

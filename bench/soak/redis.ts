import { setTimeout as pause } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { startSentinel } from '../../test/fixtures/redis-sentinel.ts';
import type { RedisServer } from '../../test/fixtures/redis-server.ts';

/**
 * How long the primary is silent before another takes over. Replication may lose the last milliseconds before a crash: longer than a
 * window, so that none has charges of both sides.
 */
const SILENT_MS = 2_000;
const GIVE_UP_MS = 60_000;

/** A primary with a replica, watched by a Sentinel. */
export interface ReplicatedRedis {
  /** The section of weir.yaml. */
  readonly store: object;
  /** Of the primary; 0 while there is none. */
  residentBytes(): Promise<number>;
  /** Kills the primary, waits until the replica has taken over, and starts the killed one as its replica. */
  failOver(): Promise<void>;
  stop(): Promise<void>;
}

export async function startReplicatedRedis(): Promise<ReplicatedRedis> {
  const { sentinelUrls, name, stop, ...servers } = await startSentinel(SILENT_MS);
  let { primary, replica } = servers;
  return {
    store: { kind: 'sentinel', sentinels: sentinelUrls, name },
    async residentBytes() {
      const info = await ask(primary, async (client) => client.info('memory')).catch(() => '');
      return Number(/^used_memory_rss:(\d+)/m.exec(info)?.[1] ?? 0);
    },
    async failOver() {
      await primary.kill();
      await until(replica, 'role:master');
      await primary.start();
      [primary, replica] = [replica, primary];
      await until(replica, 'master_link_status:up');
    },
    stop,
  };
}

async function until({ port }: RedisServer, line: string): Promise<void> {
  const giveUpMs = performance.now() + GIVE_UP_MS;
  while (!(await ask({ port }, (client) => client.info('replication')).catch(() => '')).includes(line)) {
    if (performance.now() > giveUpMs) throw new Error(`Redis at port ${port} never said ${line}`);
    await pause(100);
  }
}

async function ask<T>(
  { port }: Pick<RedisServer, 'port'>,
  question: (client: Redis) => Promise<T>,
): Promise<T> {
  const client = new Redis(port, { maxRetriesPerRequest: 0, retryStrategy: () => null });
  client.on('error', () => undefined);
  try {
    return await question(client);
  } finally {
    client.disconnect();
  }
}

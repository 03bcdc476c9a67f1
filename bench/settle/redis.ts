import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { Redis } from 'ioredis';
import type { RemoteStoreSettings } from '../../src/store/redis/connection/redis-options.ts';
import { type RedisServer, startRedisServer } from '../../test/fixtures/redis-server.ts';

/** The primary is away for so long. */
const AWAY_MS = 1_000;
const DURABLE = ['--appendonly', 'yes', '--appendfsync', 'always'];
const PRIMARY = 'weir-bench';

/** A Redis whose primary can be killed. */
export interface KilledRedis {
  readonly settings: RemoteStoreSettings;
  /** kill -9 of the primary. Returns when there is one again. */
  kill(): Promise<void>;
  stop(): Promise<void>;
}

/** Loses nothing that it has answered: its disk has each write before, and it is started again. */
export async function startDurableRedis(): Promise<KilledRedis> {
  const server = await startRedisServer({ args: DURABLE });
  return {
    settings: { kind: 'redis', url: server.url, deadlineMs: 5_000 },
    async kill() {
      await server.kill();
      await setTimeout(AWAY_MS);
      await server.start(DURABLE);
    },
    stop: () => server.stop(),
  };
}

/** A Sentinel promotes one of two replicas, and the killed primary is started again as its replica. */
export async function startFailover(): Promise<KilledRedis> {
  const safe = ['--min-replicas-to-write', '1', '--min-replicas-max-lag', '2'];
  const primary = await startRedisServer({ args: safe });
  const args = [...safe, '--replicaof', '127.0.0.1', `${primary.port}`, '--repl-diskless-sync-delay', '0'];
  const servers = [primary, await startRedisServer({ args }), await startRedisServer({ args })];
  const folder = mkdtempSync(join(tmpdir(), 'weir-bench-sentinel-'));
  const file = join(folder, 'sentinel.conf');
  const lines = [
    `sentinel monitor ${PRIMARY} 127.0.0.1 ${primary.port} 1`,
    `sentinel down-after-milliseconds ${PRIMARY} ${AWAY_MS}`,
    `sentinel failover-timeout ${PRIMARY} 5000`,
  ];
  writeFileSync(file, `${lines.join('\n')}\n`);
  const sentinel = await startRedisServer({ leading: [file, '--sentinel'] });
  const client = new Redis(sentinel.port, { enableReadyCheck: false });
  await until(async () => Array.from(await call(client, 'REPLICAS')).length === 2);
  const primaryPort = async () => Number((await call(client, 'GET-MASTER-ADDR-BY-NAME'))[1]);
  return {
    settings: { kind: 'sentinel', sentinels: [sentinel.url], name: PRIMARY, deadlineMs: 5_000 },
    async kill() {
      const port = await primaryPort();
      const killed = servers.find((server) => server.port === port);
      await killed?.kill();
      await until(async () => (await primaryPort()) !== port);
      await killed?.start(['--replicaof', '127.0.0.1', `${await primaryPort()}`]);
    },
    async stop() {
      client.disconnect();
      await Promise.all([sentinel, ...servers].map((server: RedisServer) => server.stop()));
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function call(client: Redis, command: string): Promise<ArrayLike<unknown>> {
  return (await client.call('SENTINEL', command, PRIMARY)) as unknown[];
}

async function until(isSo: () => Promise<boolean>): Promise<void> {
  while (!(await isSo())) await setTimeout(50);
}

import { mkdirSync, rmSync } from 'node:fs';
import { Redis } from 'ioredis';
import { type RedisServer, type RedisServerOptions, startRedisServer } from '../fixtures/redis-server.ts';
import { DEADLINE_MS, type Fault, type FaultyStore } from './fault.ts';

interface Ground {
  readonly server: RedisServer;
  /** A connection of the test's own, which no fault is meant for. */
  readonly admin: Redis;
}

/** A fault of one redis-server that is done to it directly. */
function faultOfServer(
  fault: Omit<Fault, 'start'>,
  act: {
    prepare?(ground: Ground): Promise<unknown>;
    break(ground: Ground): Promise<unknown>;
    repair(ground: Ground): Promise<unknown>;
  },
  options: RedisServerOptions = {},
): Fault {
  return {
    ...fault,
    async start(): Promise<FaultyStore> {
      const server = await startRedisServer(options);
      const admin = new Redis(server.port, { maxRetriesPerRequest: null, enableReadyCheck: false });
      admin.on('error', () => {});
      const ground = { server, admin };
      await act.prepare?.(ground);
      return {
        settings: { kind: 'redis', url: server.url, deadlineMs: DEADLINE_MS },
        break: () => act.break(ground),
        repair: () => act.repair(ground),
        async stop() {
          admin.disconnect();
          await server.stop();
        },
      };
    },
  };
}

async function cutOtherClients({ admin }: Ground): Promise<unknown> {
  return admin.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
}

/** Slow enough to load for as long as a test wants, and it answers LOADING meanwhile. */
const SLOW_LOADING = ['--key-load-delay', '500', '--loading-process-events-interval-bytes', '1024'];

export const serverFaults: readonly Fault[] = [
  faultOfServer(
    { name: 'kill -9, then a restart', reasons: ['disconnected'] },
    { break: ({ server }) => server.kill(), repair: ({ server }) => server.start() },
  ),
  faultOfServer(
    {
      name: 'SIGSTOP, then SIGCONT',
      reasons: ['deadline'],
      alsoPossible: ['disconnected'],
    },
    {
      break: async ({ server }) => server.signal('SIGSTOP'),
      repair: async ({ server }) => server.signal('SIGCONT'),
    },
  ),
  faultOfServer(
    { name: 'wrong password', reasons: ['auth'], alsoPossible: ['disconnected'] },
    {
      async break(ground) {
        await ground.admin.config('SET', 'requirepass', 'changed');
        await cutOtherClients(ground);
      },
      repair: ({ admin }) => admin.config('SET', 'requirepass', ''),
    },
  ),
  faultOfServer(
    { name: 'READONLY: the primary became a replica', reasons: ['readonly'] },
    {
      break: ({ admin }) => admin.replicaof('127.0.0.1', 1),
      repair: ({ admin }) => admin.replicaof('NO', 'ONE'),
    },
  ),
  faultOfServer(
    { name: 'OOM: maxmemory, noeviction', reasons: ['oom'] },
    {
      break: ({ admin }) => admin.config('SET', 'maxmemory', '1'),
      repair: ({ admin }) => admin.config('SET', 'maxmemory', '0'),
    },
  ),
  faultOfServer(
    {
      name: 'LOADING after a restart',
      reasons: ['loading'],
      alsoPossible: ['disconnected', 'deadline'],
    },
    {
      async prepare({ admin }) {
        const fill = admin.pipeline();
        for (let key = 0; key < 10_000; key++) fill.set(`fill:${key}`, 'x'.repeat(100));
        await fill.exec();
        await admin.save();
      },
      async break({ server }) {
        await server.kill();
        await server.start(SLOW_LOADING);
      },
      repair: ({ admin }) => admin.config('SET', 'key-load-delay', '0'),
    },
    { readyLine: /Loading RDB|Ready to accept/ },
  ),
  faultOfServer(
    {
      name: 'BUSY: a script that does not end',
      reasons: ['busy'],
      alsoPossible: ['deadline'],
    },
    {
      async break({ server }) {
        const other = new Redis(server.port);
        void other
          .eval('while true do end', 0)
          .catch(() => {})
          .finally(() => other.disconnect());
      },
      repair: ({ admin }) => admin.script('KILL'),
    },
    { args: ['--busy-reply-threshold', '60'] },
  ),
  faultOfServer(
    { name: 'MISCONF: snapshots fail', reasons: ['misconf'] },
    {
      async break({ server, admin }) {
        rmSync(server.directory, { recursive: true });
        await admin.config('SET', 'save', '3600 1');
        await admin.bgsave();
        while (!String(await admin.info('persistence')).includes('rdb_last_bgsave_status:err'));
      },
      async repair({ server, admin }) {
        mkdirSync(server.directory);
        await admin.config('SET', 'dir', server.directory);
        await admin.bgsave();
      },
    },
    { args: ['--enable-protected-configs', 'yes'] },
  ),
  faultOfServer(
    { name: 'SCRIPT FLUSH', reasons: [] },
    { break: ({ admin }) => admin.script('FLUSH'), repair: async () => {} },
  ),
  faultOfServer(
    { name: 'CLIENT KILL', reasons: ['disconnected'] },
    { break: cutOtherClients, repair: async () => {} },
  ),
];

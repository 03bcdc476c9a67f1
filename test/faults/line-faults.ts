import { Redis } from 'ioredis';
import { startRedisServer } from '../fixtures/redis-server.ts';
import { type Line, startTcpProxy } from '../fixtures/tcp-proxy.ts';
import { DEADLINE_MS, type Fault, type FaultyStore } from './fault.ts';

/** A fault of the line to a healthy redis-server. */
function faultOfLine(fault: Omit<Fault, 'start'>, broken: Line): Fault {
  return {
    ...fault,
    async start(): Promise<FaultyStore> {
      const server = await startRedisServer();
      const proxy = await startTcpProxy(server.port);
      return {
        settings: { kind: 'redis', url: `redis://127.0.0.1:${proxy.port}`, deadlineMs: DEADLINE_MS },
        async break() {
          proxy.set(broken);
        },
        async repair() {
          proxy.set({ kind: 'open' });
        },
        async stop() {
          await proxy.stop();
          await server.stop();
        },
      };
    },
  };
}

/**
 * A server that is full says so and hangs up. On a line without any delay the hanging up is seen before the words, so
 * this one has a little.
 */
const maxClients: Fault = {
  name: 'max clients',
  reasons: ['maxclients'],
  alsoPossible: ['disconnected'],
  async start() {
    const server = await startRedisServer();
    const proxy = await startTcpProxy(server.port);
    proxy.set({ kind: 'slow', delayMs: 3 });
    const admin = new Redis(server.port);
    return {
      settings: { kind: 'redis', url: `redis://127.0.0.1:${proxy.port}`, deadlineMs: DEADLINE_MS },
      async break() {
        await admin.config('SET', 'maxclients', '1');
        await admin.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
      },
      repair: () => admin.config('SET', 'maxclients', '100'),
      async stop() {
        admin.disconnect();
        await proxy.stop();
        await server.stop();
      },
    };
  },
};

export const lineFaults: readonly Fault[] = [
  maxClients,
  faultOfLine(
    { name: 'black hole', reasons: ['deadline'], alsoPossible: ['disconnected'] },
    { kind: 'black hole' },
  ),
  faultOfLine(
    { name: '1 s of delay', reasons: ['deadline'], alsoPossible: ['disconnected'] },
    { kind: 'slow', delayMs: 1000 },
  ),
];

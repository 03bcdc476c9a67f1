import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { RemoteStoreSettings } from '../../src/store/redis/connection/redis-options.ts';
import { freePort } from '../../test/fixtures/free-port.ts';
import { identities, limitsOf, MAIN } from '../contestants/weir.ts';
import { type Program, startProgram } from '../lab/program.ts';
import type { Line } from './ledger.ts';

export const REPLICAS = 2;
export const ACCOUNTS = 20;
export const WINDOW_SECONDS = 10;
/** More than an Account can use. */
export const IN_AN_HOUR = 1_000_000_000;
/** More than any request asks for. */
const MOST = 4_000;

const OPERATION = {
  method: 'POST',
  path: '/v1/chat/completions',
  cost: MOST,
  reserve: { json: '/max_completion_tokens', most: MOST },
  settle: { json: '/usage/total_tokens' },
  refundOn: ['5xx'],
};
/** Each Account has so many points in a window. */
const limitsFile = (limit: number) => ({
  windowSeconds: WINDOW_SECONDS,
  defaults: limitsOf(IN_AN_HOUR, IN_AN_HOUR),
  limits: {
    tokens: { per: 'account', points: limit, window: `${WINDOW_SECONDS}s` },
    'tokens-hour': { per: 'account', points: IN_AN_HOUR, window: '1h' },
  },
});

/** Replicas that share a Redis. Each can be killed, and is started again on its port. */
export class Fleet {
  readonly ports: readonly number[];
  /** All that they have logged of requests. */
  readonly lines: Line[] = [];
  readonly #folder: string;
  readonly #programs: (Program | undefined)[] = [];

  private constructor(folder: string, ports: readonly number[]) {
    this.#folder = folder;
    this.ports = ports;
  }

  static async start(
    folder: string,
    limit: number,
    upstreamPort: number,
    store: RemoteStoreSettings,
  ): Promise<Fleet> {
    const ports = await Promise.all(Array.from({ length: REPLICAS }, () => freePort()));
    const fleet = new Fleet(folder, ports);
    const write = (name: string, content: object) =>
      writeFileSync(join(folder, name), JSON.stringify(content));
    write('identities.yaml', identities(ACCOUNTS));
    write('limits.yaml', limitsFile(limit));
    for (const port of ports)
      write(`${port}.yaml`, {
        listen: { host: '127.0.0.1', port },
        admin: { host: '127.0.0.1', port: 0 },
        upstream: { url: `http://127.0.0.1:${upstreamPort}`, connections: 2_000 },
        // Redis is away for seconds: what it cannot count is not admitted.
        store: { ...store, onStoreFailure: 'reject' },
        operations: { list: [OPERATION] },
        log: { access: true, level: 'info' },
        shutdown: { drainDelaySeconds: 0 },
      });
    for (const index of ports.keys()) await fleet.#start(index);
    return fleet;
  }

  /** kill -9, and a start. */
  async kill(index: number): Promise<void> {
    const program = this.#programs[index];
    if (program === undefined) return;
    process.kill(program.pid, 'SIGKILL');
    await program.stop();
    await this.#start(index);
  }

  async stop(): Promise<void> {
    await Promise.all(this.#programs.map((program) => program?.stop(60_000)));
  }

  async #start(index: number): Promise<void> {
    const port = this.ports[index] ?? 0;
    let unread = '';
    this.#programs[index] = await startProgram({
      command: process.execPath,
      args: [MAIN, 'start', '-c', join(this.#folder, `${port}.yaml`)],
      cores: undefined,
      port,
      env: { NODE_ENV: 'production' },
      onOutput: (text) => {
        const lines = (unread + text).split('\n');
        unread = lines.pop() ?? '';
        for (const line of lines) if (line.includes('"msg":"request"')) this.lines.push(JSON.parse(line));
      },
    });
  }
}

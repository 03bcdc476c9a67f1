import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { freePort } from '../../test/fixtures/free-port.ts';
import { findProgram } from '../lab/machine.ts';
import { type Program, startProgram } from '../lab/program.ts';

const AWAY_MS = 1_000;

/** A Redis that loses nothing that it has answered, although it is killed. */
export class DurableRedis {
  readonly port: number;
  readonly #folder: string;
  #program: Program | undefined;

  private constructor(folder: string, port: number) {
    this.#folder = folder;
    this.port = port;
  }

  static async start(parent: string): Promise<DurableRedis> {
    const folder = join(parent, 'redis');
    mkdirSync(folder);
    const redis = new DurableRedis(folder, await freePort());
    await redis.#start();
    return redis;
  }

  /** kill -9, and a start a second later. */
  async kill(): Promise<void> {
    if (this.#program !== undefined) process.kill(this.#program.pid, 'SIGKILL');
    await this.#program?.stop();
    await setTimeout(AWAY_MS);
    await this.#start();
  }

  async stop(): Promise<void> {
    await this.#program?.stop();
  }

  async #start(): Promise<void> {
    const own = ['--port', `${this.port}`, '--bind', '127.0.0.1', '--dir', this.#folder];
    const durable = ['--save', '', '--appendonly', 'yes', '--appendfsync', 'always'];
    const command = findProgram('redis-server') ?? 'redis-server';
    this.#program = await startProgram({
      command,
      args: [...own, ...durable],
      cores: undefined,
      port: this.port,
    });
  }
}

import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout } from 'node:timers/promises';
import { startK6 } from '../k6/k6.ts';
import { ACCOUNTS } from './fleet.ts';

const AWAY_MS = 1_000;

/** Processes of k6 with many clients each. */
export class Crowds {
  readonly #ports: readonly number[];
  readonly #clients: number;
  readonly #endMs: number;
  readonly #running: ChildProcess[] = [];

  constructor(ports: readonly number[], count: number, clients: number, seconds: number) {
    this.#ports = ports;
    this.#clients = clients;
    this.#endMs = Date.now() + seconds * 1_000;
    for (let index = 0; index < count; index++) this.#start();
  }

  /** kill -9 of the one that has run for longest, and a start a second later. */
  async kill(): Promise<void> {
    const killed = this.#running.shift();
    killed?.kill('SIGKILL');
    await setTimeout(AWAY_MS);
    this.#start();
  }

  async ended(): Promise<void> {
    const running = this.#running.filter(
      ({ exitCode, signalCode }) => exitCode === null && signalCode === null,
    );
    await Promise.all(running.map((child) => once(child, 'exit')));
  }

  #start(): void {
    const secondsLeft = Math.ceil((this.#endMs - Date.now()) / 1_000);
    if (secondsLeft < 1) return;
    const env = {
      TARGETS: this.#ports.map((port) => `http://127.0.0.1:${port}`).join(','),
      VUS: `${this.#clients}`,
      SECONDS: `${secondsLeft}`,
      ACCOUNTS: `${ACCOUNTS}`,
    };
    // It would write a line for each connection that a killed replica breaks.
    const child = startK6('settle', env, ['--log-output', 'none']);
    child.stdout.resume();
    this.#running.push(child);
  }
}

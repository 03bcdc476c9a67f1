import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { startK6 } from '../k6/k6.ts';
import type { Question } from './ledger.ts';

export interface Load {
  /** Of each process. */
  readonly clients: number;
  readonly accounts: number;
  readonly seconds: number;
}

const AWAY_MS = 1_000;
const UNANSWERED = /^unanswered (\{.*\})$/;

/** Processes of k6 with many clients each. */
export class Crowds {
  readonly #ports: readonly number[];
  readonly #load: Load;
  readonly #endMs: number;
  readonly #running: ChildProcess[] = [];
  readonly #logs: string[] = [];
  readonly #folder: string;

  constructor(folder: string, ports: readonly number[], count: number, load: Load) {
    this.#folder = folder;
    this.#ports = ports;
    this.#load = load;
    this.#endMs = Date.now() + load.seconds * 1_000;
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

  /** The requests whose connection broke without an answer. */
  unanswered(): readonly Question[] {
    const lines = this.#logs.filter(existsSync).flatMap((log) => readFileSync(log, 'utf8').split('\n'));
    return lines.flatMap((line) => {
      const [, question] = UNANSWERED.exec(line) ?? [];
      return question === undefined ? [] : [JSON.parse(question)];
    });
  }

  #start(): void {
    const secondsLeft = Math.ceil((this.#endMs - Date.now()) / 1_000);
    if (secondsLeft < 1) return;
    const env = {
      TARGETS: this.#ports.map((port) => `http://127.0.0.1:${port}`).join(','),
      VUS: `${this.#load.clients}`,
      SECONDS: `${secondsLeft}`,
      ACCOUNTS: `${this.#load.accounts}`,
    };
    const log = join(this.#folder, `k6-${this.#logs.length}.log`);
    this.#logs.push(log);
    const child = startK6('settle', env, ['--log-output', `file=${log}`, '--log-format', 'raw']);
    child.stdout.resume();
    this.#running.push(child);
  }
}

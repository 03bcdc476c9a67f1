/**
 * A program: several customers send requests at their rates, each in an open loop, and leave when an answer takes longer than they
 * wait. Says as JSON what each of them got.
 */
import { createConnection, type Socket } from 'node:net';
import { percentile } from '../lab/turns.ts';
import { MessageReader, requestOf, statusOf } from '../load/client.ts';
import type { Crowd, CustomerResult } from './fair.ts';

const TICK_MS = 1;

/** One customer, whose Account is `acct_${account}`. */
class Customer {
  readonly #idle: Socket[] = [];
  readonly #request: string;
  readonly #startMs = performance.now();
  readonly #rate: number;
  #due = 0;
  #sent = 0;
  #refused = 0;
  #left = 0;
  #waitsMs: number[] = [];

  constructor(account: number, rate: number) {
    this.#request = requestOf(account, crowd.path);
    this.#rate = rate;
  }

  /** Sends what is due. */
  tick(nowMs: number): void {
    const total = Math.floor(((nowMs - this.#startMs) * this.#rate) / 1_000);
    for (; this.#due < total; this.#due++) this.#send(nowMs);
  }

  forget(): void {
    [this.#sent, this.#refused, this.#left, this.#waitsMs] = [0, 0, 0, []];
  }

  get result(): CustomerResult {
    const [sent, refused, left, waits] = [this.#sent, this.#refused, this.#left, this.#waitsMs];
    const [p50Ms, p99Ms] = [percentile(waits, 0.5), percentile(waits, 0.99)];
    return { sent, served: waits.length, refused, left, p50Ms, p99Ms };
  }

  #send(dueMs: number): void {
    this.#sent++;
    const socket = this.#idle.pop() ?? open();
    const reader = new MessageReader();
    const end = () => {
      clearTimeout(patience);
      socket.removeAllListeners('data').removeAllListeners('close');
    };
    const patience = setTimeout(() => {
      this.#left++;
      end();
      socket.destroy();
    }, crowd.patienceMs);
    const onData = (chunk: string) => {
      const [head] = reader.push(chunk);
      if (head === undefined) return;
      end();
      if (statusOf(head) === 200) this.#waitsMs.push(performance.now() - dueMs);
      else this.#refused++;
      if (/\r\nconnection: close/i.test(head)) socket.destroy();
      else this.#idle.push(socket);
    };
    const onClose = () => {
      this.#refused++;
      end();
    };
    socket.on('data', onData).on('close', onClose).write(this.#request);
  }
}

const crowd: Crowd = JSON.parse(process.argv[2] ?? '{}');
const customers = crowd.rates.map((rate, index) => new Customer(index + 1, rate));
await run(crowd.warmUpSeconds);
for (const customer of customers) customer.forget();
await run(crowd.seconds);
const results = customers.map((customer) => customer.result);
process.stdout.write(JSON.stringify(results), () => process.exit());

function open(): Socket {
  const socket = createConnection(crowd.port, '127.0.0.1').setNoDelay(true).setEncoding('latin1');
  return socket.on('error', () => undefined);
}

async function run(seconds: number): Promise<void> {
  const untilMs = performance.now() + seconds * 1_000;
  for (let nowMs = performance.now(); nowMs < untilMs; nowMs = performance.now()) {
    for (const customer of customers) customer.tick(nowMs);
    await new Promise((resolve) => setTimeout(resolve, TICK_MS));
  }
}

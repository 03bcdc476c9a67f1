import { Activity } from '../../src/observe/usage/activity.ts';
import { UsageBatch } from '../../src/observe/usage/batch.ts';
import { Talkers } from '../../src/observe/usage/talkers.ts';
import type { Bench } from '../lab/bench.ts';
import { collectGarbage } from '../lab/heap.ts';
import { inTurn, median } from '../lab/turns.ts';
import { FinishedRequests } from '../load/finished-requests.ts';
import { table, thousands } from '../report/section.ts';

/** Of simulated time, so that sums are passed on as often as in a gateway. */
const ROUND_SECONDS = 20;
const REQUESTS_PER_SECOND = 15_000;
const ACCOUNTS = [10, 1_000, 100_000];

const SECOND_MS = 1_000;

/** Measures counting in sums, beside counting each request by itself; the summary that a replica publishes; and memory. */
export async function measureUsage(bench: Bench): Promise<readonly string[]> {
  const rows: string[][] = [];
  for (const accounts of ACCOUNTS) rows.push(await rowOf(bench, accounts));
  return [
    `${thousands(REQUESTS_PER_SECOND)} requests a second of Accounts in turn, in Organizations of ten; ${bench.rounds} rounds of ${ROUND_SECONDS} s.`,
    '',
    ...table(
      [
        'Accounts:',
        'ns per request:',
        'each request counted by itself:',
        'summary, ms a second:',
        'memory, MB:',
      ],
      rows,
    ),
  ];
}

async function rowOf({ rounds }: Bench, accounts: number): Promise<string[]> {
  const requests = new FinishedRequests(accounts);
  const before = memoryBytes();
  const sides = [new Counters('summed', requests), new Counters('single', requests)];
  for (const side of sides) await side.count();
  const costs = await inTurn(sides, rounds, (side) => side.count());
  // Both sets of counters hold the same.
  const megabytes = (memoryBytes() - before) / 2 / 1_048_576;
  const of = (side: 'summed' | 'single', figure: 'nsPerRequest' | 'summaryMs') =>
    median((costs[side] ?? []).map((cost) => cost[figure]));
  return [
    thousands(accounts),
    of('summed', 'nsPerRequest').toFixed(0),
    of('single', 'nsPerRequest').toFixed(0),
    of('summed', 'summaryMs').toFixed(1),
    megabytes.toFixed(1),
  ];
}

function memoryBytes(): number {
  collectGarbage();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}

class Counters {
  readonly name: 'summed' | 'single';
  readonly #requests: FinishedRequests;
  readonly #batch = new UsageBatch();
  readonly #talkers = new Talkers(this.#batch);
  /** Kept, so that its memory is measured. */
  readonly activity = new Activity(this.#batch);
  #second = 0;

  constructor(name: 'summed' | 'single', requests: FinishedRequests) {
    this.name = name;
    this.#requests = requests;
  }

  /** Counts the requests of a round, with the summary that a replica makes once a second. */
  async count(): Promise<{ nsPerRequest: number; summaryMs: number }> {
    let requestsMs = 0;
    let summariesMs = 0;
    for (const last = this.#second + ROUND_SECONDS; this.#second < last; this.#second++) {
      const startMs = performance.now();
      this.#countSecond();
      const endMs = performance.now();
      await this.#talkers.summary((this.#second + 1) * SECOND_MS);
      requestsMs += endMs - startMs;
      summariesMs += performance.now() - endMs;
    }
    const nsPerRequest = (requestsMs * 1_000_000) / (ROUND_SECONDS * REQUESTS_PER_SECOND);
    return { nsPerRequest, summaryMs: summariesMs / ROUND_SECONDS };
  }

  #countSecond(): void {
    const isSingle = this.name === 'single';
    const first = this.#second * REQUESTS_PER_SECOND;
    for (let next = first; next < first + REQUESTS_PER_SECOND; next++) {
      this.#batch.requestFinished(this.#requests.of(next), (next / REQUESTS_PER_SECOND) * SECOND_MS);
      if (isSingle) this.#batch.flush();
    }
  }
}

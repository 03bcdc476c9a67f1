/**
 * `node --expose-gc --import tsx bench/usage/main.ts`: what counting usage and top talkers costs, in nanoseconds per request,
 * beside counting each request by itself instead of once a second; the summary that a replica publishes, and memory. Medians of rounds in turn.
 */
import { loadavg } from 'node:os';
import { Activity } from '../../src/observe/usage/activity.ts';
import { UsageBatch } from '../../src/observe/usage/batch.ts';
import { Talkers } from '../../src/observe/usage/talkers.ts';
import type { RequestContext } from '../../src/stages/request-context.ts';
import { provenance } from '../lab/machine.ts';
import { finishedRequests } from '../load/finished-requests.ts';
import { median } from '../measure/lineup.ts';
import { publishSection } from '../report/section.ts';

const ROUNDS = 7;
/** Of simulated time, so that sums are passed on as often as in a gateway. */
const ROUND_SECONDS = 20;
const REQUESTS_PER_SECOND = 15_000;
const ACCOUNTS = [10, 1_000, 100_000];

const SECOND_MS = 1_000;

interface Counters {
  readonly batch: UsageBatch;
  readonly talkers: Talkers;
  /** Kept, so that its memory is measured. */
  readonly activity: Activity;
}

function startCounters(): Counters {
  const batch = new UsageBatch();
  return { batch, talkers: new Talkers(batch), activity: new Activity(batch) };
}

interface Cost {
  readonly nsPerRequest: number;
  /** Of one summary, which a replica makes once a second. */
  readonly summaryMs: number;
}

async function measureRound(
  { batch, talkers }: Counters,
  requests: readonly RequestContext[],
  fromSecond: number,
  isEach: boolean,
): Promise<Cost> {
  let requestsMs = 0;
  let summariesMs = 0;
  let next = fromSecond * REQUESTS_PER_SECOND;
  for (let second = fromSecond; second < fromSecond + ROUND_SECONDS; second++) {
    const startMs = performance.now();
    for (const end = next + REQUESTS_PER_SECOND; next < end; next++) {
      const request = requests[next % requests.length];
      if (request === undefined) continue;
      batch.requestFinished(request, (next / REQUESTS_PER_SECOND) * SECOND_MS);
      if (isEach) batch.flush();
    }
    const endMs = performance.now();
    await talkers.summary((second + 1) * SECOND_MS);
    requestsMs += endMs - startMs;
    summariesMs += performance.now() - endMs;
  }
  return {
    nsPerRequest: (requestsMs * 1_000_000) / (ROUND_SECONDS * REQUESTS_PER_SECOND),
    summaryMs: summariesMs / ROUND_SECONDS,
  };
}

async function rowOf(accounts: number): Promise<string> {
  const requests = finishedRequests(accounts);
  globalThis.gc?.();
  const before = process.memoryUsage();
  const [summed, single] = [startCounters(), startCounters()];
  const costs: { summed: Cost[]; single: Cost[] } = { summed: [], single: [] };
  for (let round = 0; round <= ROUNDS; round++) {
    const second = round * ROUND_SECONDS;
    const ofSums = await measureRound(summed, requests, second, false);
    const ofSingles = await measureRound(single, requests, second, true);
    // The first round warms up.
    if (round === 0) continue;
    costs.summed.push(ofSums);
    costs.single.push(ofSingles);
  }
  globalThis.gc?.();
  const after = process.memoryUsage();
  // Both sets of counters hold the same.
  const megabytes =
    (after.heapUsed + after.arrayBuffers - before.heapUsed - before.arrayBuffers) / 2 / 1_048_576;
  const cells = [
    accounts.toLocaleString('en'),
    median(costs.summed.map((cost) => cost.nsPerRequest)).toFixed(0),
    median(costs.single.map((cost) => cost.nsPerRequest)).toFixed(0),
    median(costs.summed.map((cost) => cost.summaryMs)).toFixed(1),
    megabytes.toFixed(1),
  ];
  return `| ${cells.join(' | ')} |`;
}

const rows: string[] = [];
for (const accounts of ACCOUNTS) rows.push(await rowOf(accounts));
publishSection('usage', [
  '## Usage and top talkers',
  '',
  `${provenance('node --expose-gc --import tsx bench/usage/main.ts')}, machine load ${(loadavg()[0] ?? 0).toFixed(1)}.`,
  `${REQUESTS_PER_SECOND.toLocaleString('en')} requests a second of Accounts in turn, in Organizations of ten; ${ROUNDS} rounds of ${ROUND_SECONDS} s.`,
  '',
  '| Accounts | ns per request | each request counted by itself | summary, ms a second | memory, MB |',
  '|--:|--:|--:|--:|--:|',
  ...rows,
]);

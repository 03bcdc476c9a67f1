/** A gateway's replica, a process of its own: sends its share of the arrivals to every counter at the same moments. */
import { contenders } from './contenders.ts';
import type { Decided } from './judge.ts';
import type { Arrival } from './patterns.ts';

export interface ReplicaWork {
  readonly url: string;
  readonly prefix: string;
  readonly limit: number;
  readonly isWeighted: boolean;
  readonly arrivals: readonly Arrival[];
  /** By the clock of `nowMs`, which all processes share. */
  readonly startMs: number;
}

export type ReplicaResult = Record<string, Decided[]>;

/** Milliseconds of the machine's monotonic clock. */
export function nowMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

async function replay(work: ReplicaWork): Promise<ReplicaResult> {
  const { url, prefix, limit, arrivals, startMs, isWeighted } = work;
  const limits = { account: limit, organization: 1_000_000 };
  const able = contenders.filter(({ canWeigh }) => canWeigh || !isWeighted);
  const counters = await Promise.all(
    able.map(async ({ name, open }, index) => ({
      name,
      counter: await open(url, `${prefix}${index}`, limits),
    })),
  );
  const result: ReplicaResult = Object.fromEntries(able.map(({ name }) => [name, []]));
  const pending: Promise<void>[] = [];
  for (const { atMs, cost } of arrivals) {
    const waitMs = startMs + atMs - nowMs();
    if (waitMs > 0.5) await new Promise((resolve) => setTimeout(resolve, waitMs));
    for (const { name, counter } of counters) {
      const sentMs = nowMs();
      pending.push(
        counter.decide('acct', 'org', cost).then((isAdmitted) => {
          result[name]?.push({ sentMs, receivedMs: nowMs(), cost, isAdmitted });
        }),
      );
    }
  }
  await Promise.all(pending);
  await Promise.all(counters.map(({ counter }) => counter.close()));
  return result;
}

if (process.send !== undefined) {
  process.once('message', (work) => {
    void replay(work as ReplicaWork).then((result) => {
      process.send?.(result, () => process.disconnect());
    });
  });
}

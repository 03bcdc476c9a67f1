import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { contenders } from './contenders.ts';
import { type Decided, judge, type Verdict } from './judge.ts';
import { LIMIT, type Pattern, patterns } from './patterns.ts';
import { nowMs, type ReplicaResult, type ReplicaWork } from './replica.ts';

const REPLICAS = 3;
const CONNECT_MS = 2500;

export interface AccuracyRow {
  readonly pattern: string;
  /** By contender; undefined where it cannot charge such costs. */
  readonly verdicts: ReadonlyMap<string, Verdict | undefined>;
}

/** Every counter under the same arrivals at the same time, from three replicas, through one Redis. */
export async function measureAccuracy(url: string): Promise<AccuracyRow[]> {
  const rows: AccuracyRow[] = [];
  for (const [index, pattern] of patterns().entries()) {
    console.log(`accuracy: ${pattern.name}`);
    rows.push(await measure(url, pattern, `acc${index}-${Date.now()}`));
  }
  return rows;
}

async function measure(url: string, pattern: Pattern, prefix: string): Promise<AccuracyRow> {
  const startMs = nextWholeSecond(CONNECT_MS);
  const { name, isWeighted, arrivals } = pattern;
  const results = await Promise.all(
    Array.from({ length: REPLICAS }, async (_, replica) => {
      const share = arrivals.filter((_arrival, index) => index % REPLICAS === replica);
      const work: ReplicaWork = { url, prefix, limit: LIMIT, isWeighted, arrivals: share, startMs };
      const child = fork(fileURLToPath(new URL('replica.ts', import.meta.url)), {
        serialization: 'advanced',
      });
      child.send(work);
      const [result] = (await once(child, 'message')) as [ReplicaResult];
      return result;
    }),
  );
  const verdicts = contenders.map(({ name: contender }): [string, Verdict | undefined] => {
    const decided: Decided[] = results.flatMap((result) => result[contender] ?? []);
    return [contender, decided.length === 0 ? undefined : judge(decided, LIMIT)];
  });
  return { pattern: name, verdicts: new Map(verdicts) };
}

/** A whole second of the wall clock, where fixed windows begin, in terms of the monotonic one. */
function nextWholeSecond(afterMs: number): number {
  const toMonotonicMs = nowMs() - Date.now();
  return Math.ceil((Date.now() + afterMs) / 1000) * 1000 + toMonotonicMs;
}

import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { Bench } from '../lab/bench.ts';
import { percentile } from '../lab/turns.ts';
import { drawBars } from '../report/bars.ts';
import { table, writeResult } from '../report/section.ts';
import { contenders } from './contenders.ts';
import { type Decided, judge, type Verdict } from './judge.ts';
import { LIMIT, type Pattern, patterns } from './patterns.ts';
import { nowMs, type ReplicaResult, type ReplicaWork } from './replica.ts';

const REPLICAS = 3;
const CONNECT_MS = 2500;
/**
 * With slower answers than this, the moment of a decision is not known well enough to compare it with an exact log's: the
 * machine was busy, and the pattern is replayed, three times more at most.
 */
const SLOW_ANSWER_MS = 60;
const TRIES = 4;

interface AccuracyRow {
  readonly pattern: string;
  /** By contender; undefined where it cannot charge such costs. */
  readonly verdicts: ReadonlyMap<string, Verdict | undefined>;
  /** The 99th percentile of all answers. */
  readonly answerMs: number;
}

/** Every counter under the same arrivals at the same time, from three replicas, through one Redis. */
export async function measureAccuracy(url: string, bench: Bench): Promise<string[]> {
  const rows: AccuracyRow[] = [];
  for (const [index, pattern] of patterns()
    .slice(0, bench.isQuick ? 1 : undefined)
    .entries()) {
    rows.push(await calmest(url, pattern, `acc${index}`));
  }
  if (bench.isRecorded) writeResult('counter-accuracy.svg', plotOf(rows));
  const names = contenders.map(({ name }) => name);
  const cells = rows.map(({ pattern, verdicts, answerMs }) => [
    pattern,
    ...names.map((name) => {
      const verdict = verdicts.get(name);
      return verdict === undefined
        ? 'cannot'
        : `${verdict.worstWindow.toFixed(3)} / ${range(verdict.usefulShare)}`;
    }),
    `${answerMs.toFixed(0)} ms`,
  ]);
  return [
    '**Accuracy.** Limit 500 points in any second, three replicas, one Redis, the same requests at the same moments through every counter. First',
    'figure: points in the fullest window over the limit (only what was certainly decided inside it). Second: points admitted over what an exact',
    'sliding log admits of the same requests, least and most: as if each was decided when it was sent, and as if when it was answered. The slower',
    'the answers, the further apart are the two; of several replays the one with the fastest counts. How useful the counter is at worst, with',
    'exact clocks, is below.',
    '',
    ...table(['arrivals', ...names, 'p99 of answers'], cells),
    '',
    '![The fullest window over the limit, by pattern and counter](results/counter-accuracy.svg)',
  ];
}

/** One number if both are the same as written. */
function range(bounds: readonly number[]): string {
  return [...new Set(bounds.map((bound) => bound.toFixed(3)))].join('–');
}

/** Bars of the fullest window over the limit, a group for each pattern, with a line at 1. */
function plotOf(rows: readonly AccuracyRow[]): string {
  return drawBars({
    title: 'Points in the fullest window, over the limit',
    subtitle:
      'Three replicas, one Redis, the same requests through every counter. Right of the line the limit is broken.',
    groups: rows.map(({ pattern, verdicts }) => ({
      title: pattern,
      bars: [...verdicts].flatMap(([name, verdict]) =>
        verdict === undefined
          ? []
          : [{ name, values: [verdict.worstWindow], label: verdict.worstWindow.toFixed(3) }],
      ),
    })),
    bound: 1,
  });
}

/** The replay with the fastest answers, whatever else it shows. */
async function calmest(url: string, pattern: Pattern, prefix: string): Promise<AccuracyRow> {
  let best: AccuracyRow | undefined;
  for (
    let attempt = 0;
    attempt < TRIES && (best === undefined || best.answerMs > SLOW_ANSWER_MS);
    attempt++
  ) {
    console.log(`accuracy: ${pattern.name}`);
    const row = await measure(url, pattern, `${prefix}-${attempt}-${Date.now()}`);
    if (best === undefined || row.answerMs < best.answerMs) best = row;
  }
  if (best === undefined) throw new Error('nothing was measured');
  return best;
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
  const answersMs = results
    .flatMap((result) => Object.values(result).flat())
    .map(({ sentMs, receivedMs }) => receivedMs - sentMs);
  const answerMs = percentile(answersMs, 0.99);
  return { pattern: name, verdicts: new Map(verdicts), answerMs };
}

/** A whole second of the wall clock, where fixed windows begin, in terms of the monotonic one. */
function nextWholeSecond(afterMs: number): number {
  const toMonotonicMs = nowMs() - Date.now();
  return Math.ceil((Date.now() + afterMs) / 1000) * 1000 + toMonotonicMs;
}

import type { Limits } from '../domain/limits.ts';
import type { PriceOf, ReadLine } from './input/entry.ts';
import type { LogSource } from './input/log-file.ts';
import { type ReadProgress, readLog } from './input/read-log.ts';
import { notesOn } from './notes.ts';
import { Replay, type Retries } from './replay.ts';
import { type ReplayResult, resultOf } from './result.ts';

export interface ReplayRun {
  readonly sources: readonly LogSource[];
  readonly readLine: ReadLine;
  readonly hasLoggedCosts: boolean;
  readonly priceOf: PriceOf | undefined;
  readonly limits: Limits;
  readonly retries: Retries;
  /** Whether to record each bucket over time, for a report. */
  readonly hasSeries: boolean;
  onProgress(progress: ReadProgress): void;
  /** Ends the reading early. The result then covers the lines read so far. */
  readonly signal: AbortSignal;
}

/** Reads a log and charges its requests with other limits. */
export async function runReplay(run: ReplayRun): Promise<{ result: ReplayResult; replay: Replay }> {
  const { retries } = run;
  const replay = new Replay(run);
  const tally = await readLog({
    sources: run.sources,
    readLine: run.readLine,
    deliver: (entry) => replay.take(entry),
    onProgress: (progress) => run.onProgress(progress),
    signal: run.signal,
  });
  replay.end();
  const complete = !run.signal.aborted;
  const { priceOf, hasLoggedCosts } = run;
  const notes = notesOn({ replay, tally, retries, complete, priceOf, hasLoggedCosts });
  return { result: resultOf({ replay, tally, retries, complete, notes }), replay };
}

import type { Awaitable } from '../domain/awaitable.ts';
import type { Refusal } from './problems.ts';

/** The result of a stage: a refusal, `done` to skip the remaining stages, or undefined to continue. */
export type Verdict = Refusal | 'done' | undefined;

/** One step of the pipeline. It reads what earlier stages wrote to `state`, and adds its own results. */
export type Stage<State> = (state: State) => Awaitable<Verdict>;

/**
 * Runs stages in order and returns the first refusal. Synchronous if every stage is, which avoids a promise per request.
 */
export function runStages<State>(
  stages: readonly Stage<State>[],
  state: State,
  first = 0,
): Awaitable<Refusal | undefined> {
  for (let index = first; index < stages.length; index++) {
    const verdict = stages[index]?.(state);
    if (verdict instanceof Promise) {
      return verdict.then((late) => (late === undefined ? runStages(stages, state, index + 1) : ended(late)));
    }
    if (verdict !== undefined) return ended(verdict);
  }
  return undefined;
}

function ended(verdict: Refusal | 'done'): Refusal | undefined {
  return verdict === 'done' ? undefined : verdict;
}

import type { Awaitable } from '../domain/awaitable.ts';
import type { Refusal } from './problems.ts';

/** What a stage answers: a refusal, `done` to skip the stages that remain, or undefined to pass the request on. */
export type Verdict = Refusal | 'done' | undefined;

/** One step of a request's way. It reads what earlier stages wrote into `state`, and writes its own part. */
export type Stage<State> = (state: State) => Awaitable<Verdict>;

/**
 * Runs stages in their order, and ends at the first refusal. Synchronous as long as every stage is, so that a request
 * that nothing has to wait for costs no promise.
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

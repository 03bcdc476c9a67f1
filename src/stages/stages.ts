import { type Awaitable, andThenWith, isLate } from '../domain/awaitable.ts';
import type { Refusal } from '../domain/problems.ts';

/** The result of a stage: a refusal, or undefined to continue. */
export type Verdict = Refusal | undefined;

/** One step of the pipeline. It reads what earlier stages wrote to the request, and adds its own results. */
export type Stage<Request, Shared> = (request: Request, shared: Shared) => Awaitable<Verdict>;

/**
 * Runs stages in order and returns the first refusal. Synchronous if every stage is, which avoids a promise per request.
 */
export function runStages<Request, Shared>(
  stages: readonly Stage<Request, Shared>[],
  request: Request,
  shared: Shared,
  first = 0,
): Awaitable<Refusal | undefined> {
  for (let index = first; index < stages.length; index++) {
    const verdict = stages[index]?.(request, shared);
    if (isLate(verdict)) return andThenWith(verdict, runRest, { stages, request, shared, next: index + 1 });
    if (verdict !== undefined) return verdict;
  }
  return undefined;
}

/** The stages behind one whose verdict came later. */
interface Rest<Request, Shared> {
  readonly stages: readonly Stage<Request, Shared>[];
  readonly request: Request;
  readonly shared: Shared;
  readonly next: number;
}

function runRest<Request, Shared>(
  verdict: Verdict,
  { stages, request, shared, next }: Rest<Request, Shared>,
): Awaitable<Verdict> {
  return verdict ?? runStages(stages, request, shared, next);
}

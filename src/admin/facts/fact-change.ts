import { hostname } from 'node:os';
import { LOOK_SECONDS } from '../../domain/pace.ts';
import type { Making } from '../../facts/fact-record.ts';
import { type Fact, type KnownFacts, NoRoom } from '../../facts/facts.ts';
import type { FollowedFacts } from '../../facts/followed-facts.ts';
import type { Changes } from '../../observe/log/noticed-changes.ts';
import { UnknownOutcome } from '../../store/shared-store.ts';
import { ActionRefused } from '../action.ts';

/** Redis did not take a change, or gave no answer. */
export class StoreUnavailable extends ActionRefused {
  override readonly name = 'StoreUnavailable';
  override readonly status = 503;
}

class WithoutRoom extends ActionRefused {
  override readonly name = 'WithoutRoom';
  override readonly status = 409;
}

/** A change that an operator asks for, and what its audit line names. */
interface FactChange<T extends Fact> extends Making<T> {
  readonly action: string;
  readonly by: string;
  readonly why: string;
  /**
   * What was to be changed.
   *
   * @param made the facts; undefined if it did not come to that
   */
  details(made: readonly T[] | undefined): object;
}

/**
 * Makes facts at all replicas, puts them in force here, and writes one audit line whatever becomes of it.
 *
 * @returns the facts, and `notes`: what the operator should know
 * @throws StoreUnavailable
 * @throws ActionRefused if there is no room for a fact about what none is known of
 */
export async function changeFacts<T extends Fact>(
  facts: FollowedFacts<T>,
  log: Changes,
  change: FactChange<T>,
) {
  const changed = await audited(facts, log, change);
  for (const fact of changed.made) facts.apply(fact);
  return changed;
}

async function audited<T extends Fact>(
  facts: FollowedFacts<T>,
  log: Changes,
  { action, by, why, details, keys, readsRecord = false, make }: FactChange<T>,
) {
  /** `recorded`: in force here, and elsewhere once the record is read. */
  let outcome: 'changed' | 'recorded' | 'unchanged' | 'unknown' = 'unchanged';
  let problem: string | undefined;
  let made: readonly T[] | undefined;
  const making: Making<T> = {
    keys,
    readsRecord,
    make(atMs, current) {
      const replica = hostname();
      const asked = make(atMs, current);
      refuseBeyondMost(facts.known, asked, facts.nowMs);
      made = asked.map((fact) => ({ ...fact, replica }));
      return made;
    },
  };
  try {
    const { facts: published, notPublished } = await facts.make(making);
    problem = notPublished;
    outcome = problem === undefined ? 'changed' : 'recorded';
    return { made: published, notes: problem === undefined ? [] : [lateNote(problem, 'replica')] };
  } catch (error) {
    problem = error instanceof Error ? error.message : String(error);
    if (error instanceof UnknownOutcome) outcome = 'unknown';
    throw refusalOf(error, problem);
  } finally {
    log.info({ audit: true, action, by, why, outcome, problem, ...details(made) }, action);
  }
}

/** What the operator gets instead of the change. */
function refusalOf(error: unknown, problem: string): ActionRefused {
  if (error instanceof ActionRefused) return error;
  if (error instanceof NoRoom) return new WithoutRoom(problem);
  return new StoreUnavailable(
    error instanceof UnknownOutcome ? unknownNote(problem) : unchangedNote(problem),
  );
}

function refuseBeyondMost<T extends Fact>(known: KnownFacts<T>, facts: readonly T[], nowMs: number): void {
  const { kind } = known;
  const keys = facts.map((fact) => kind.keyOf(fact));
  if (known.hasRoomFor(keys, nowMs)) return;
  throw new NoRoom(kind);
}

/** @param reader what reads the record, in the operator's words */
export function lateNote(problem: string, reader: 'replica' | 'gateway'): string {
  return (
    `It is recorded, and every ${reader} reads the record within ${LOOK_SECONDS} seconds. It was not published at once, ` +
    `because the Redis user may not publish (${problem}).`
  );
}

function unknownNote(problem: string): string {
  return `Redis gave no answer, so it may or may not have been changed: look at the list (${problem}).`;
}

function unchangedNote(problem: string): string {
  return `Nothing was changed: Redis does not take the command (${problem}).`;
}

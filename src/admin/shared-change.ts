import { LOOK_SECONDS } from '../domain/pace.ts';
import { type Fact, type Facts, timeAfter } from '../facts/facts.ts';
import type { Changes } from '../observe/log/changes.ts';
import { type Published, UnknownOutcome } from '../store/shared-store.ts';
import { ActionRefused } from './action.ts';

/** Redis did not take a change, or gave no answer. */
export class StoreUnavailable extends ActionRefused {
  override readonly name = 'StoreUnavailable';
  override readonly status = 503;
}

/** What is known of a change that an operator asked for. */
type Outcome =
  | 'changed'
  /** In force here; elsewhere once the record is read. */
  | 'recorded'
  | 'unchanged'
  | 'unknown';

/** Where facts of one kind are sent, so that other replicas receive them. */
export interface FactPublisher<T> {
  /** Unix time by the clock that all replicas share. */
  nowMs(): Promise<number>;
  /**
   * Records and publishes facts, all or none. `replaced` are those that the new ones take the place of. Rejects with an
   * `UnknownOutcome` where Redis gave no answer, and with any other error where nothing was changed.
   */
  publish(facts: readonly T[], replaced: readonly T[]): Promise<Pick<Published, 'notPublished'>>;
}

/** What the audit line of a change names. */
export interface AuditedChange {
  readonly action: string;
  readonly by: string;
  readonly why: string;
  /** What was to be changed, as far as it is known by the end. */
  details(): object;
}

/**
 * Makes a change that all replicas share, and writes one audit line whatever becomes of it. Returns what the operator should know.
 *
 * @param change undefined where there is no other replica
 * @throws StoreUnavailable
 */
export async function audited(
  log: Pick<Changes, 'info'>,
  { action, by, why, details }: AuditedChange,
  change: () => Promise<Pick<Published, 'notPublished'> | undefined>,
): Promise<readonly string[]> {
  let outcome: Outcome = 'unchanged';
  let problem: string | undefined;
  try {
    problem = (await change())?.notPublished;
    outcome = problem === undefined ? 'changed' : 'recorded';
    return problem === undefined ? [] : [lateNote(problem, 'replica')];
  } catch (error) {
    if (error instanceof ActionRefused) {
      problem = error.message;
      throw error;
    }
    problem = error instanceof Error ? error.message : String(error);
    outcome = error instanceof UnknownOutcome ? 'unknown' : 'unchanged';
    throw new StoreUnavailable(outcome === 'unknown' ? unknownNote(problem) : unchangedNote(problem));
  } finally {
    log.info({ audit: true, action, by, why, outcome, problem, ...details() }, action);
  }
}

interface ChangedFacts<T extends Fact> {
  readonly facts: Pick<Facts<T>, 'find'>;
  readonly log: Pick<Changes, 'info'>;
  /** Undefined where this process is the only replica. */
  readonly publisher: FactPublisher<T> | undefined;
  /** Unix time, as far as this process knows it. */
  nowMs(): number;
}

interface FactsChange<T> extends Omit<AuditedChange, 'details'> {
  /** What the facts are about. */
  readonly keys: readonly string[];
  /** For the audit line. @param made undefined if nothing was */
  details(made: readonly T[] | undefined): object;
  make(atMs: number): readonly T[];
}

/** As `audited`, for facts that take the place of those of the same keys. Returns what was made, which the caller puts in force here. */
export async function changeFacts<T extends Fact>(
  { facts, log, publisher, nowMs }: ChangedFacts<T>,
  { keys, make, details, ...audit }: FactsChange<T>,
): Promise<{ readonly made: readonly T[]; readonly notes: readonly string[] }> {
  let made: readonly T[] | undefined;
  const notes = await audited(log, { ...audit, details: () => details(made) }, async () => {
    const ownMs = nowMs();
    const replaced = keys.flatMap((key) => facts.find(key, ownMs) ?? []);
    made = make(timeAfter(replaced, (await publisher?.nowMs()) ?? ownMs));
    return publisher?.publish(made, replaced);
  });
  return { made: made ?? [], notes };
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

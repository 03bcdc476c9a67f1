import { randomUUID } from 'node:crypto';
import type { Store } from '../store.ts';
import { Journal, type JournalObserver } from './journal.ts';
import { PostgresJournal } from './postgres.ts';
import { PROCESS_CLOCK, RecordingStore, UNIX_CLOCK } from './recording-store.ts';

/** A journal that is written. */
export interface OpenJournal {
  /** Where past counts are read. */
  readonly tables: PostgresJournal;
  /** Age of the oldest count that is not written; 0 if all are. */
  lagSeconds(): number;
  /** The store, with its decisions on durable limits recorded. It closes the journal as well. */
  recording(store: Store): Store;
}

interface OpenSettings {
  readonly url: string;
  readonly flushMs: number;
  /** Replicas with the same one add to the same counts. */
  readonly fleet: string;
  /** Whether the store counts in this process, by its clock. */
  readonly isInProcess: boolean;
}

/** Returns at once: while PostgreSQL cannot be reached, counts are kept in memory. */
export function openJournal(
  { url, flushMs, fleet, isInProcess }: OpenSettings,
  observer: JournalObserver,
): OpenJournal {
  const tables = new PostgresJournal(url, fleet);
  const journal = new Journal(tables, { flushMs, replica: randomUUID() }, observer);
  return {
    tables,
    lagSeconds: () => journal.lagSeconds,
    recording: (store) => new RecordingStore(store, journal, isInProcess ? PROCESS_CLOCK : UNIX_CLOCK),
  };
}

import { randomUUID } from 'node:crypto';
import { type FollowedStore, followStore, type StoreSettings } from '../open-store.ts';
import type { Store } from '../store.ts';
import { Journal, type JournalObserver } from './journal.ts';
import { PostgresJournal } from './postgres.ts';
import { PROCESS_CLOCK, RecordingStore, RedisClock } from './recording-store.ts';
import { Recovery, type RecoveryObserver } from './recovery.ts';

/** A journal that is written. */
export interface OpenJournal {
  /** Where past counts are read. */
  readonly tables: PostgresJournal;
  /** Notices that Redis has lost counts, which are then put back. */
  readonly marks: FollowedStore['marks'] | undefined;
  /** Age of the oldest count that is not written; 0 if all are. */
  lagSeconds(): number;
  /** Whether the store has lost durable counts that are not put back. */
  isRecovering(): boolean;
  /** Resolves when nothing is being put back. */
  recovered(): Promise<void>;
  /** The store, with its decisions on durable limits recorded. It closes the journal as well. */
  recording(store: Store): Store;
}

interface OpenSettings {
  readonly url: string;
  readonly flushMs: number;
  /** Replicas with the same one add to the same counts. */
  readonly fleet: string;
  readonly store: StoreSettings;
}

/** Returns at once: while PostgreSQL cannot be reached, counts are kept in memory. */
export function openJournal(
  { url, flushMs, fleet, store }: OpenSettings,
  observer: JournalObserver & RecoveryObserver,
): OpenJournal {
  const tables = new PostgresJournal(url, fleet);
  const journal = new Journal(tables, { flushMs, replica: randomUUID() }, observer);
  const clock = store.kind === 'memory' ? PROCESS_CLOCK : new RedisClock();
  const followed = followStore(store, fleet, {
    missing: () => recovery?.want(),
    arrived: (server) => recovery?.arrived(server),
    left: () => recovery?.left(),
  });
  const recovery = followed && new Recovery(tables.recovery, journal, followed.counts, observer);
  return {
    tables,
    marks: followed?.marks,
    lagSeconds: () => journal.lagSeconds,
    isRecovering: () => recovery?.isLost ?? false,
    recovered: async () => recovery?.idle(),
    recording: (counting) => new RecordingStore(counting, journal, clock, recovery),
  };
}

import type { Logger } from 'pino';
import type { Settings } from '../../config/settings/settings.ts';
import { errorText } from '../../domain/shown.ts';
import type { Metrics } from '../../observe/metrics/metrics.ts';
import type { JournalObserver } from '../../store/journal/journal.ts';
import type { OpenJournal } from '../../store/journal/open-journal.ts';
import type { RecoveryObserver } from '../../store/journal/recovery.ts';

/** Records what long limits count, if the settings name a database. Otherwise none of its modules is loaded. */
export async function runJournal(
  { journal: { url, flushMs }, store }: Settings,
  metrics: Metrics,
  log: Logger,
): Promise<Pick<OpenJournal, 'recording'> & Partial<OpenJournal>> {
  if (url === undefined) return { recording: (counting) => counting };
  const { openJournal } = await import('../../store/journal/open-journal.ts');
  const journal = openJournal({ url, flushMs, fleet: store.keyPrefix, store }, observeJournal(metrics, log));
  metrics.showJournal(journal.lagSeconds, journal.isRecovering);
  return journal;
}

/** The metrics, and a line in the log when something begins to fail, but none for each time that it fails. */
export function observeJournal(metrics: Metrics, log: Logger): JournalObserver & RecoveryObserver {
  let isFailing = false;
  let isRecoveryFailing = false;
  let isGoingOn = false;
  let hasDropped = false;
  return {
    journalWritten(sums) {
      metrics.journalWritten(sums);
      if (isFailing) log.info('the journal is written again');
      isFailing = false;
      hasDropped = false;
    },
    journalFailed(error) {
      metrics.journalFailed(error);
      if (!isFailing)
        log.warn({ problem: errorText(error) }, 'the journal cannot be written: counts wait in memory');
      isFailing = true;
    },
    journalUntidy(error) {
      log.warn({ problem: errorText(error) }, 'old rows of the journal cannot be dropped');
    },
    journalDropped(points, error) {
      metrics.journalDropped(points, error);
      if (!hasDropped)
        log.error({ points, problem: error && errorText(error) }, 'counts are missing in the journal');
      hasDropped = true;
    },
    recovered(recovered, seconds) {
      metrics.recovered(recovered, seconds);
      const message =
        recovered.buckets > 0
          ? 'Redis had lost durable counts, which are put back'
          : 'There were no durable counts to put back into Redis';
      log.info({ ...recovered, seconds }, message);
    },
    recoveryFailed(error) {
      metrics.recoveryFailed(error);
      if (!isRecoveryFailing)
        log.warn(
          { problem: errorText(error) },
          'durable counts cannot be put back: without PostgreSQL, their limits soon count from what Redis has',
        );
      isRecoveryFailing = true;
    },
    countsGoOn() {
      if (!isGoingOn) log.warn('PostgreSQL cannot be reached: durable limits count from what Redis has');
      isGoingOn = true;
    },
    countsComplete() {
      isRecoveryFailing = false;
      isGoingOn = false;
    },
  };
}

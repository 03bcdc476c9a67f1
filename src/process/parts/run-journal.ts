import type { Logger } from 'pino';
import type { Settings } from '../../config/settings/settings.ts';
import type { Metrics } from '../../observe/metrics/metrics.ts';
import type { JournalObserver } from '../../store/journal/journal.ts';
import type { OpenJournal } from '../../store/journal/open.ts';

/** A journal, or nothing in its place. */
type RunningJournal = Pick<OpenJournal, 'recording'> & Partial<Pick<OpenJournal, 'tables'>>;

/** Records what long limits count, if the settings name a database. Otherwise none of its modules is loaded. */
export async function runJournal(
  { journal: { url, flushMs }, store: { kind, keyPrefix } }: Settings,
  metrics: Metrics,
  log: Logger,
): Promise<RunningJournal> {
  if (url === undefined) return { recording: (store) => store };
  const { openJournal } = await import('../../store/journal/open.ts');
  const journal = openJournal(
    { url, flushMs, fleet: keyPrefix, isInProcess: kind === 'memory' },
    observed(metrics, log),
  );
  metrics.showJournal(() => journal.lagSeconds());
  return journal;
}

/** The metrics, and lines in the log when writing begins to fail, and when it works again. */
function observed(metrics: JournalObserver, log: Logger): JournalObserver {
  let isFailing = false;
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
        log.warn({ problem: error.message }, 'the journal cannot be written: counts wait in memory');
      isFailing = true;
    },
    journalDropped(points, error) {
      metrics.journalDropped(points, error);
      if (!hasDropped) log.error({ points, problem: error?.message }, 'counts are missing in the journal');
      hasDropped = true;
    },
  };
}

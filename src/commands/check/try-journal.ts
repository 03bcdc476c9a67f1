import { type ConnectionResult, reasonOf } from './try-upstreams.ts';

/** Writes nothing to the journal, which also finds a user that may not create its tables or write to them. */
export async function tryJournal(url: string, fleet: string): Promise<ConnectionResult> {
  const { PostgresJournal } = await import('../../store/journal/postgres.ts');
  const journal = new PostgresJournal(url, fleet);
  try {
    await journal.try();
    return { name: 'journal', outcome: 'ok', text: 'writes' };
  } catch (error) {
    return { name: 'journal', outcome: 'failed', text: reasonOf(error) };
  } finally {
    await journal.close();
  }
}

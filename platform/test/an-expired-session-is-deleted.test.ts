import { expect, onTestFinished, test } from 'vitest';
import { openDatabase } from '../src/database/connect.ts';
import { deleteExpired } from '../src/database/retention.ts';
import { insertResource } from '../src/resources/resources.ts';
import { databases } from './fixtures/databases.ts';

test.each(databases)(
  'a Session is deleted once it has expired, and nothing else, on $name',
  async ({ open }) => {
    const place = await open();
    const { db, close } = await openDatabase(place.settings);
    onTestFinished(async () => {
      await close();
      await place.close();
    });
    const at = new Date();
    const inSeconds = (seconds: number) => new Date(at.getTime() + seconds * 1000);
    const insert = (id: string, kind: string, seconds: number) =>
      insertResource(db, {
        ...{ id, kind, status: 'Activated', account_id: 'acct_1', external_id: null },
        ...{ fields: { expiresAt: inSeconds(seconds).toISOString() }, events: {}, at },
      });
    await insert('session_60', 'Session', 60);
    await insert('session_900', 'Session', 900);
    await insert('other', 'Payee', 60);
    await deleteExpired(db, inSeconds(61));
    const kept = await db.selectFrom('resources').select('id').orderBy('sequence').execute();
    expect(kept.map(({ id }) => id)).toEqual(['session_900', 'other']);
  },
);

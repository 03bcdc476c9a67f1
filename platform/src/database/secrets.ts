import { randomBytes } from 'node:crypto';
import type { Database } from './schema.ts';

const KEY_BYTES = 32;

/** The key that seals page tokens. It is created once per database, so that every process can open every token. */
export async function readTokenKey(db: Database): Promise<Buffer> {
  await db
    .insertInto('secrets')
    .values({ name: 'page-token', value: randomBytes(KEY_BYTES).toString('base64') })
    .onConflict((conflict) => conflict.doNothing())
    .execute();
  const { value } = await db
    .selectFrom('secrets')
    .select('value')
    .where('name', '=', 'page-token')
    .executeTakeFirstOrThrow();
  return Buffer.from(value, 'base64');
}

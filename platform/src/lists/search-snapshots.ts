import { randomUUID } from 'node:crypto';
import { sql } from 'kysely';
import type { Database } from '../database/schema.ts';
import type { Resource } from '../events/transitions.ts';
import type { Call } from '../http/call.ts';
import { invalid, notFound } from '../http/problems.ts';
import { resourceBody } from '../resources/resources.ts';
import { readFilters } from './filters.ts';
import type { ListSource } from './page.ts';
import { selectResources } from './resource-list.ts';

/** A result set of one instant, paged by its id until it expires (contract section 4.2). */
export interface Snapshot {
  readonly id: string;
  readonly totalSize: number;
}

/** Maximum number of rows, more than anyone pages through. */
const MAX_ROWS = 10_000;

/** Maximum number of snapshots of one Account. Each is a copy of its rows. */
const MAX_SNAPSHOTS = 20;

/** Creates a snapshot of the results of a search. Throws a 422 if there are too many. */
export function createSnapshot(
  db: Database,
  call: Call,
  kind: string,
  lifetimeSeconds: number,
  now: Date,
): Promise<Snapshot> {
  const id = `rs_${randomUUID()}`;
  return db.transaction().execute(async (trx) => {
    const expiresAt = new Date(now.getTime() + lifetimeSeconds * 1000);
    await trx
      .insertInto('search_snapshots')
      .values({
        id,
        account_id: call.caller.accountId,
        query: queryOf(call),
        total_size: 0,
        expires_at: expiresAt,
      })
      .execute();
    const matches = trx
      .selectFrom(selectResources(trx, call, kind, MAX_ROWS + 1))
      .select([
        sql<string>`${id}`.as('snapshot_id'),
        sql<string>`row_number() over (order by sequence)`.as('position'),
        sql<string>`to_jsonb(found)`.as('resource'),
      ])
      .orderBy('sequence')
      .limit(MAX_ROWS + 1);
    const { numInsertedOrUpdatedRows } = await trx
      .insertInto('search_snapshot_rows')
      .columns(['snapshot_id', 'position', 'resource'])
      .expression(matches)
      .executeTakeFirst();
    const totalSize = Number(numInsertedOrUpdatedRows ?? 0);
    if (totalSize > MAX_ROWS) {
      throw invalid('page[mode]', `freezes at most ${MAX_ROWS} results; narrow the search with filters`);
    }
    await trx.updateTable('search_snapshots').set({ total_size: totalSize }).where('id', '=', id).execute();
    // Last, so that the copies of one Account are made side by side.
    await deleteOthers(trx, call.caller.accountId, id, now);
    return { id, totalSize };
  });
}

/** The snapshot. Throws a 404 if it has expired or belongs to another Account, and a 422 if it is of another search. */
export async function findSnapshot(db: Database, call: Call, id: string, now: Date): Promise<Snapshot> {
  const snapshot = await db
    .selectFrom('search_snapshots')
    .selectAll()
    .where('id', '=', id)
    .where('account_id', '=', call.caller.accountId)
    .where('expires_at', '>', now)
    .executeTakeFirst();
  if (!snapshot) throw notFound('result set', id);
  if (snapshot.query !== queryOf(call))
    throw invalid('page[resultSetId]', 'belongs to a search with other filters');
  return { id, totalSize: snapshot.total_size };
}

/** The rows of the snapshot. Throws a 404 if it was deleted after it was found. */
export function snapshotList(
  db: Database,
  snapshot: Snapshot,
): ListSource<{ position: string; resource: object }> {
  return {
    async fetch(afterKey, limit) {
      const rows = await db
        .selectFrom('search_snapshot_rows')
        .select(['position', 'resource'])
        .where('snapshot_id', '=', snapshot.id)
        .where('position', '>', afterKey)
        .orderBy('position')
        .limit(limit)
        .execute();
      if (rows.length === 0 && Number(afterKey) < snapshot.totalSize)
        throw notFound('result set', snapshot.id);
      return rows;
    },
    keyOf: (row) => String(row.position),
    toBody: ({ resource }) => resourceBody(thaw(resource as FrozenResource)),
    count: () => Promise.resolve(snapshot.totalSize),
  };
}

type FrozenResource = Omit<Resource, 'created_at' | 'updated_at'> & {
  created_at: string;
  updated_at: string;
};

function thaw(frozen: FrozenResource): Resource {
  return { ...frozen, created_at: new Date(frozen.created_at), updated_at: new Date(frozen.updated_at) };
}

function queryOf(call: Call): string {
  return JSON.stringify([call.operationId, readFilters(call)]);
}

/** Deletes expired snapshots, and then the oldest of the Account but for this one, which is new. */
async function deleteOthers(db: Database, accountId: string, id: string, now: Date): Promise<void> {
  // Until the transaction ends, so that parallel searches count each other's.
  await sql`select pg_advisory_xact_lock(hashtextextended(${`snapshots of ${accountId}`}, 0))`.execute(db);
  await db.deleteFrom('search_snapshots').where('expires_at', '<', now).execute();
  const old = db
    .selectFrom('search_snapshots')
    .select('id')
    .where('account_id', '=', accountId)
    .where('id', '<>', id)
    .orderBy('expires_at', 'desc')
    .offset(MAX_SNAPSHOTS - 1);
  await db.deleteFrom('search_snapshots').where('id', 'in', old).execute();
}

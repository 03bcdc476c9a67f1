import { sql } from 'kysely';
import type { Database } from '../database/schema.ts';
import type { Resource } from '../events/transitions.ts';
import type { Call } from '../http/call.ts';
import { resourceBody } from '../resources/resources.ts';
import { visibilityOf } from '../resources/visibility.ts';
import { matchesFilters, readFilters } from './filters.ts';
import { type ListSource, MOST_COUNTED } from './page.ts';

/** At most `limit` resources of a kind that the caller may see and that match the request's filters, the oldest of each way to see them. */
export function selectResources(db: Database, call: Call, kind: string, limit: number, afterKey = '0') {
  const ways = waysToSee(db, call, kind).map(
    (way) => sql`(${way.selectAll().where('sequence', '>', afterKey).orderBy('sequence').limit(limit)})`,
  );
  // A caller without an Organization sees nothing that belongs to Organizations alone, and a ServiceAccount nothing that belongs to Persons.
  const none = sql`${db.selectFrom('resources').selectAll().where(sql.lit(false))}`;
  return sql<Resource>`(${sql.join(ways.length === 0 ? [none] : ways, sql` union `)})`.as<'found'>('found');
}

/** One query for each kind of visibility, so that each reads a range of an index in the list's order. */
function waysToSee(db: Database, call: Call, kind: string) {
  const filters = readFilters(call);
  return visibilityOf(kind, call.caller).map(({ column, id }) =>
    db.selectFrom('resources').where('kind', '=', kind).where(column, '=', id).where(matchesFilters(filters)),
  );
}

/** The numbers alone, because the rows are wide. */
async function countResources(db: Database, call: Call, kind: string): Promise<number> {
  const ways = waysToSee(db, call, kind).map(
    (way) => sql`(${way.select('sequence').limit(MOST_COUNTED + 1)})`,
  );
  if (ways.length === 0) return 0;
  const found = sql`(${sql.join(ways, sql` union `)})`.as<'found'>('found');
  const { count } = await db
    .selectFrom(found)
    .select((fn) => fn.fn.countAll().as('count'))
    .executeTakeFirstOrThrow();
  return Number(count);
}

/** A list of resources, with its total unless `isCountless`. */
export function resourceList(
  db: Database,
  call: Call,
  kind: string,
  isCountless = false,
): ListSource<Resource> {
  return {
    fetch: (afterKey, limit) =>
      db
        .selectFrom(selectResources(db, call, kind, limit, afterKey))
        .selectAll()
        .orderBy('sequence')
        .limit(limit)
        .execute(),
    keyOf: (row) => String(row.sequence),
    toBody: resourceBody,
    ...(!isCountless && { count: () => countResources(db, call, kind) }),
  };
}

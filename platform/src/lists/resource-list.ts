import { sql } from 'kysely';
import type { Database } from '../database/schema.ts';
import type { Resource } from '../events/transitions.ts';
import type { Call } from '../http/call.ts';
import { resourceBody } from '../resources/resources.ts';
import { visibilityOf } from '../resources/visibility.ts';
import { matchesFilters, readFilters } from './filters.ts';
import type { ListSource } from './page.ts';

/** The resources of a kind that the caller may see and that match the request's filters. Oldest first if `limit` is given. */
export function selectResources(
  db: Database,
  call: Call,
  kind: string,
  page?: { readonly afterKey: string; readonly limit: number },
) {
  const filters = readFilters(call);
  // One query for each kind of visibility, so that each reads a range of an index in the list's order.
  const ways = visibilityOf(kind, call.caller).map(({ column, id }) => {
    const way = db
      .selectFrom('resources')
      .selectAll()
      .where('kind', '=', kind)
      .where(column, '=', id)
      .where(matchesFilters(filters));
    if (!page) return sql`(${way})`;
    return sql`(${way.where('sequence', '>', page.afterKey).orderBy('sequence').limit(page.limit)})`;
  });
  // A caller without an Organization may see no resource of a kind that belongs to Organizations alone.
  const none = sql`${db.selectFrom('resources').selectAll().where(sql.lit(false))}`;
  return sql<Resource>`(${sql.join(ways.length === 0 ? [none] : ways, sql` union `)})`.as<'found'>('found');
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
        .selectFrom(selectResources(db, call, kind, { afterKey, limit }))
        .selectAll()
        .orderBy('sequence')
        .limit(limit)
        .execute(),
    keyOf: (row) => String(row.sequence),
    toBody: resourceBody,
    ...(!isCountless && {
      async count() {
        const row = await db
          .selectFrom(selectResources(db, call, kind))
          .select((fn) => fn.fn.countAll().as('count'))
          .executeTakeFirstOrThrow();
        return Number(row.count);
      },
    }),
  };
}

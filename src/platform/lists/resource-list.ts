import type { Database } from '../database/schema.ts';
import type { Resource } from '../events/transitions.ts';
import type { Call } from '../http/call.ts';
import { resourceBody } from '../resources/resources.ts';
import { matchesFilters, readFilters } from './filters.ts';
import type { ListSource } from './page.ts';
import type { ListScope } from './scope.ts';

/** The resources of a kind that the caller sees and that match the request's filters, oldest first. */
export function selectResources(db: Database, call: Call, kind: string, scope: ListScope) {
  return db
    .selectFrom('resources')
    .where('kind', '=', kind)
    .where((where) => scope(where, call))
    .where(matchesFilters(readFilters(call)));
}

/** A list of resources, with its number of matches unless `isCountless`. */
export function resourceList(
  db: Database,
  call: Call,
  kind: string,
  scope: ListScope,
  isCountless = false,
): ListSource<Resource> {
  const select = () => selectResources(db, call, kind, scope);
  return {
    fetch: (afterKey, limit) =>
      select().selectAll().where('sequence', '>', afterKey).orderBy('sequence').limit(limit).execute(),
    keyOf: (row) => String(row.sequence),
    toBody: resourceBody,
    ...(!isCountless && {
      async count() {
        const row = await select()
          .select((fn) => fn.fn.countAll().as('count'))
          .executeTakeFirstOrThrow();
        return Number(row.count);
      },
    }),
  };
}

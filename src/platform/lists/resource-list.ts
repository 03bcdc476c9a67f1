import type { ExpressionBuilder, ExpressionWrapper, SqlBool } from 'kysely';
import type { Database, Tables } from '../database/schema.ts';
import type { Resource } from '../events/transitions.ts';
import type { Call } from '../http/call.ts';
import { resourceBody } from '../resources/resources.ts';
import { matchesFilters, readFilters } from './filters.ts';
import type { ListSource } from './page.ts';

/** Which resources of a kind a caller's list holds. */
export type ListScope = (
  where: ExpressionBuilder<Tables, 'resources'>,
  call: Call,
) => ExpressionWrapper<Tables, 'resources', SqlBool>;

export const ofAccount: ListScope = (where, call) => where('account_id', '=', call.caller.accountId);
export const ofPerson: ListScope = (where, call) => where('person_id', '=', call.caller.principalId);
/** The acting Account, and with an Organization every Account of it. */
export const ofOrganization: ListScope = (where, call) =>
  where.or([
    where('account_id', '=', call.caller.accountId),
    where('organization_id', '=', call.caller.organizationId ?? ''),
  ]);

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

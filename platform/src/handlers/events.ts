import type { Selectable } from 'kysely';
import type { Database, Tables } from '../database/schema.ts';
import type { Call } from '../http/call.ts';
import { notFound } from '../http/problems.ts';
import type { Handlers } from '../http/routes.ts';
import { type Filter, readFilters, toTime } from '../lists/filters.ts';
import { type ListSource, readPage } from '../lists/page.ts';
import { ok, pathId, type Services } from './services.ts';

type Event = Pick<Selectable<Tables['events']>, 'sequence' | 'payload'>;

/** `/v3/platform/events`: the events of the last 30 days, in the form in which they are delivered. */
export function eventHandlers({ sealer }: Services): Handlers {
  return {
    listEvents: async (call, db) => ok(await readPage(sealer, call, eventList(db, call))),
    async getEvent(call, db) {
      const id = pathId(call, 'eventId');
      const event = await selectVisible(db, call).where('id', '=', id).executeTakeFirst();
      if (!event) throw notFound('event', id);
      return ok(event.payload);
    },
  };
}

/** The events whose recipient is the acting Account, its Organization or the principal. */
function selectVisible(db: Database, { caller }: Call) {
  return db
    .selectFrom('events')
    .select(['sequence', 'payload'])
    .where((where) =>
      where.or([
        where.and({ scope_type: 'Account', scope_id: caller.accountId }),
        where.and({ scope_type: 'Person', scope_id: caller.principalId }),
        where.and({ scope_type: 'Organization', scope_id: caller.organizationId ?? '' }),
      ]),
    );
}

/** The list has no total, because it only grows. */
function eventList(db: Database, call: Call): ListSource<Event> {
  const filters = readFilters(call);
  return {
    fetch(afterKey, limit) {
      const visible = selectVisible(db, call).where('sequence', '>', afterKey);
      return filters.reduce(withFilter, visible).orderBy('sequence').limit(limit).execute();
    },
    keyOf: (row) => String(row.sequence),
    toBody: (row) => row.payload,
  };
}

type Query = ReturnType<typeof selectVisible>;

/** openapi.yaml declares no other filters here. */
function withFilter(query: Query, filter: Filter): Query {
  const { field, operator, value } = filter;
  if (field === 'type') return query.where('type', '=', value);
  if (field === 'resourceId') return query.where('resource_id', '=', value);
  return query.where('occurred_at', operator === 'gte' ? '>=' : '<', new Date(toTime(filter)));
}

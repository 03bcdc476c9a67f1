import { type Selectable, sql } from 'kysely';
import type { Database, Tables } from '../database/schema.ts';
import type { Call } from '../http/call.ts';
import { notFound } from '../http/problems.ts';
import type { Handlers } from '../http/routes.ts';
import { type Filter, readFilters, toTime } from '../lists/filters.ts';
import { type ListSource, readPage } from '../lists/page.ts';
import { scopesOf } from '../resources/visibility.ts';
import { ok, pathId, type Services } from './services.ts';

type Event = Pick<Selectable<Tables['events']>, 'sequence' | 'payload'>;

/** `/v3/platform/events`: the events of the last 30 days, in the form in which they are delivered. */
export function eventHandlers({ sealer }: Services): Handlers {
  return {
    listEvents: async (call, db) => ok(await readPage(sealer, call, eventList(db, call))),
    async getEvent(call, db) {
      const id = pathId(call, 'eventId');
      const event = await db
        .selectFrom('events')
        .select('payload')
        .where('id', '=', id)
        .where((where) => where.or(scopesOf(call.caller).map((scope) => where.and(scope))))
        .executeTakeFirst();
      if (!event) throw notFound('event', id);
      return ok(event.payload);
    },
  };
}

/** The list has no total, because it only grows. */
function eventList(db: Database, call: Call): ListSource<Event> {
  return {
    fetch: (afterKey, limit) => selectEvents(db, call, afterKey, limit).execute(),
    keyOf: (row) => String(row.sequence),
    toBody: (row) => row.payload,
  };
}

/** A page of the events that the caller reads and that match the request's filters. */
export function selectEvents(db: Database, call: Call, afterKey: string, limit: number) {
  const filters = readFilters(call);
  // One query for each recipient, so that each reads a range of an index in the list's order.
  const ofRecipients = scopesOf(call.caller).map((scope) => {
    const query = selectLater(db, afterKey).where((where) => where.and(scope));
    return sql`(${filters.reduce(withFilter, query).orderBy('sequence').limit(limit)})`;
  });
  return db
    .selectFrom(sql<Event>`(${sql.join(ofRecipients, sql` union all `)})`.as<'found'>('found'))
    .selectAll()
    .orderBy('sequence')
    .limit(limit);
}

function selectLater(db: Database, afterKey: string) {
  return db.selectFrom('events').select(['sequence', 'payload']).where('sequence', '>', afterKey);
}

type Query = ReturnType<typeof selectLater>;

/** openapi.yaml declares no other filters here. */
function withFilter(query: Query, filter: Filter): Query {
  const { field, operator, value } = filter;
  if (field === 'type') return query.where('type', '=', value);
  if (field === 'resourceId') return query.where('resource_id', '=', value);
  return query.where('occurred_at', operator === 'gte' ? '>=' : '<', new Date(toTime(filter)));
}

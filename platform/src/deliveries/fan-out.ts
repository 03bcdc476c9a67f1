import { randomBytes } from 'node:crypto';
import { sql } from 'kysely';
import type { Database } from '../database/schema.ts';
import { isSubscribed } from '../events/subscribed.ts';

/** An event, as far as it decides who is sent it. */
interface OutgoingEvent {
  readonly id: string;
  readonly type: string;
  readonly scope_type: string;
  readonly scope_id: string;
}

/** Logs and queues a delivery for each matching subscription of each event's recipient, in `db`'s transaction. */
export async function queueEvents(db: Database, events: readonly OutgoingEvent[], now: Date): Promise<void> {
  const subscriptions = await db
    .selectFrom('subscriptions')
    .select(['id', 'scope_type', 'scope_id', 'subscribed_events'])
    .where('scope_id', 'in', [...new Set(events.map((event) => event.scope_id))])
    .execute();
  const deliveries = events.flatMap((event) =>
    subscriptions
      .filter((one) => one.scope_type === event.scope_type && one.scope_id === event.scope_id)
      .filter((one) => isSubscribed(one.subscribed_events, event.type))
      .map((one) => ({ id: `dlv_${shortId()}`, subscription_id: one.id, event_id: event.id })),
  );
  if (deliveries.length === 0) return;
  // A subscription may have been deleted since it was read. The lock keeps the others until the transaction ends.
  await sql`
    with wanted as (
      select * from json_to_recordset(${JSON.stringify(deliveries)}::text::json)
        as (id text, subscription_id text, event_id text)
    ), present as (
      select id from subscriptions where id in (select subscription_id from wanted) for key share
    ), logged as (
      insert into deliveries (id, subscription_id, event_id, status, created_at)
      select wanted.id, subscription_id, event_id, 'Pending', ${now}
      from wanted join present on present.id = subscription_id
      returning id, subscription_id
    )
    insert into delivery_queue (delivery_id, subscription_id, due_at)
    select id, subscription_id, ${now} from logged
  `.execute(db);
}

/** As unique as a UUID in 22 instead of 36 characters. Ids of events and deliveries are in up to six places of the database. */
export function shortId(): string {
  return randomBytes(16).toString('base64url');
}

import { sql } from 'kysely';
import type { Database } from '../database/schema.ts';
import type { WaitingSubscription } from './shares.ts';

/** A delivery that this process has claimed, with everything that one attempt needs. */
export interface ClaimedDelivery {
  readonly deliveryId: string;
  readonly subscriptionId: string;
  /** As in `WaitingSubscription`. */
  readonly owner: string;
  readonly eventId: string;
  /** The event as it is sent, before serialisation. */
  readonly payload: unknown;
  readonly url: string;
  /** The current secret, and the previous one during a rotation. */
  readonly secrets: readonly string[];
  /** Whether the subscription is paused because its endpoint fails. */
  readonly isProbe: boolean;
  /** As in `WaitingSubscription`. */
  readonly isFailing: boolean;
  /** Failed attempts since the delivery was queued. */
  readonly failures: number;
}

/**
 * Queues deliveries that are in the log, in `db`'s transaction. A delivery that is already queued is left unchanged, so
 * it is sent once.
 */
export async function queueDeliveries(
  db: Database,
  deliveries: readonly { readonly id: string; readonly subscription_id: string }[],
  dueAt: Date,
): Promise<void> {
  if (deliveries.length === 0) return;
  const rows = deliveries.map(({ id, subscription_id }) => ({
    delivery_id: id,
    subscription_id,
    due_at: dueAt,
  }));
  await db
    .insertInto('delivery_queue')
    .values(rows)
    .onConflict((conflict) => conflict.doNothing())
    .execute();
}

/** Removes the deliveries of a subscription from the queue, in `db`'s transaction. */
export async function leaveQueue(db: Database, subscriptionId: string): Promise<void> {
  await lockUnderWay(db, subscriptionId);
  await db.deleteFrom('delivery_queue').where('subscription_id', '=', subscriptionId).execute();
}

/** Makes all deliveries of a subscription that wait for a retry due now, in `db`'s transaction. */
export async function hastenDeliveries(db: Database, subscriptionId: string, now: Date): Promise<void> {
  await lockUnderWay(db, subscriptionId);
  await db
    .updateTable('delivery_queue')
    .set({ due_at: now })
    .where('subscription_id', '=', subscriptionId)
    .where((where) => where.or([where('leased_until', 'is', null), where('leased_until', '<=', now)]))
    // Version 0.2.0 is sending it until `due_at`.
    .where('is_under_way', '=', false)
    .execute();
}

/**
 * Locks the deliveries whose attempts may be logged at this moment, in the order in which that locks them: in another one, the two could
 * wait for each other. There are few of them, and sorting a queue of millions takes seconds.
 */
async function lockUnderWay(db: Database, subscriptionId: string): Promise<void> {
  await db
    .selectFrom('delivery_queue')
    .select('delivery_id')
    .where('subscription_id', '=', subscriptionId)
    .where('leased_until', 'is not', null)
    .orderBy('delivery_id')
    .forUpdate()
    .execute();
}

/** Makes the next delivery of a subscription due now, so that it can be probed. Deliveries that others change at this moment are skipped. */
export async function hastenProbe(db: Database, subscriptionId: string, now: Date): Promise<void> {
  await sql`
    with next as (
      select delivery_id from delivery_queue
      where subscription_id = ${subscriptionId} and (leased_until is null or leased_until <= ${now})
        and not is_under_way
      order by due_at limit 1 for update skip locked
    )
    update delivery_queue set due_at = ${now} from next
    where delivery_queue.delivery_id = next.delivery_id and due_at > ${now}
  `.execute(db);
}

/**
 * The subscriptions with deliveries due now: those that are not failing first, and then the longest waiting first. Costs one index probe for each subscription in the
 * queue, regardless of the number of its deliveries (a loose index scan).
 */
export async function findWaiting(db: Database, now: Date): Promise<WaitingSubscription[]> {
  const { rows } = await sql<{ id: string; owner: string; is_probe: boolean; is_failing: boolean }>`
    with recursive queued as (
      (select subscription_id from delivery_queue order by subscription_id limit 1)
      union all
      select (
        select next.subscription_id from delivery_queue next
        where next.subscription_id > queued.subscription_id order by next.subscription_id limit 1
      )
      from queued where queued.subscription_id is not null
    )
    select subscriptions.id, scope_type || ' ' || scope_id as owner, status <> 'Active' as is_probe,
      status <> 'Active' or failing_since is not null as is_failing
    from queued
    join subscriptions on subscriptions.id = queued.subscription_id
    cross join lateral (
      select due_at from delivery_queue first
      where first.subscription_id = queued.subscription_id and (leased_until is null or leased_until <= ${now})
      order by due_at limit 1
    ) head
    where head.due_at <= ${now} and (status = 'Active' or probe_at <= ${now})
    order by is_failing, head.due_at
  `.execute(db);
  return rows.map(({ id, owner, is_probe, is_failing }) => ({
    id,
    owner,
    isProbe: is_probe,
    isFailing: is_failing,
  }));
}

/**
 * Claims due deliveries, up to the given number for each subscription. No other process claims them before `leaseEnd`.
 * If this process dies, they are claimed again then, so each delivery is attempted at least once.
 */
export async function claimDeliveries(
  db: Database,
  slots: ReadonlyMap<string, number>,
  now: Date,
  leaseEnd: Date,
): Promise<ClaimedDelivery[]> {
  const shares = [...slots].map(([id, count]) => ({ id, count }));
  const { rows } = await sql<ClaimedDelivery>`
    with due as (
      select oldest.delivery_id
      from json_to_recordset(${JSON.stringify(shares)}::text::json) as share (id text, count int)
      cross join lateral (
        select delivery_id from delivery_queue
        where subscription_id = share.id and due_at <= ${now} and (leased_until is null or leased_until <= ${now})
        order by due_at limit share.count for update skip locked
      ) oldest
    ), claimed as (
      update delivery_queue set leased_until = ${leaseEnd} from due
      where delivery_queue.delivery_id = due.delivery_id
      returning delivery_queue.delivery_id, delivery_queue.failures
    )
    select claimed.delivery_id as "deliveryId", claimed.failures,
      deliveries.subscription_id as "subscriptionId", deliveries.event_id as "eventId",
      events.payload, subscriptions.url,
      array_remove(array[subscriptions.secret,
        case when previous_secret_until > ${now} then previous_secret end], null) as secrets,
      subscriptions.scope_type || ' ' || subscriptions.scope_id as owner,
      subscriptions.status <> 'Active' as "isProbe",
      subscriptions.status <> 'Active' or failing_since is not null as "isFailing"
    from claimed
    join deliveries on deliveries.id = claimed.delivery_id
    join events on events.id = deliveries.event_id
    join subscriptions on subscriptions.id = deliveries.subscription_id
  `.execute(db);
  return rows;
}

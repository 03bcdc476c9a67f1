import type { Selectable } from 'kysely';
import type { Database, Tables } from '../database/schema.ts';
import { DELIVERY_QUEUE } from '../deliveries/relay.ts';
import { notFound } from '../http/problems.ts';
import type { Handlers } from '../http/routes.ts';
import { type ListSource, readPage } from '../lists/page.ts';
import { ok, pathId, type Services } from './services.ts';
import { findSubscription } from './subscriptions.ts';

type Attempt = Selectable<Tables['delivery_attempts']>;

interface Delivery extends Selectable<Tables['deliveries']> {
  readonly type: string;
}

/** `/v3/platform/webhook-subscriptions/{subscriptionId}/deliveries`: the delivery log, and sending again. */
export function deliveryHandlers({ jobs, sealer }: Services): Handlers {
  return {
    async listWebhookDeliveries(call, db) {
      const { id } = await findSubscription(db, call);
      const status = call.query['filter[status][eq]'];
      return ok(
        await readPage(sealer, call, deliveryList(db, id, status), { onStaleToken: 'reject', boundTo: id }),
      );
    },
    async getWebhookDelivery(call, db) {
      const delivery = await findDelivery(
        db,
        (await findSubscription(db, call)).id,
        pathId(call, 'deliveryId'),
      );
      const attempts = await db
        .selectFrom('delivery_attempts')
        .selectAll()
        .where('delivery_id', '=', delivery.id)
        .orderBy('number')
        .execute();
      return ok({ ...bodyOf(delivery), log: attempts.map(attemptBody) });
    },
    async redeliverWebhook(call, db) {
      const subscription = await findSubscription(db, call);
      const delivery = await findDelivery(db, subscription.id, pathId(call, 'deliveryId'));
      // One that is still on its way needs no second job; one of a paused subscription waits for its resumption.
      if (delivery.status === 'Pending') return { status: 202, body: bodyOf(delivery) };
      const status = subscription.status === 'Active' ? 'Pending' : 'Held';
      await db.updateTable('deliveries').set({ status }).where('id', '=', delivery.id).execute();
      if (status === 'Pending')
        await jobs.enqueue(db, DELIVERY_QUEUE, [{ data: { deliveryId: delivery.id } }]);
      return { status: 202, body: bodyOf({ ...delivery, status }) };
    },
  };
}

function selectDeliveries(db: Database, subscriptionId: string) {
  return db
    .selectFrom('deliveries')
    .innerJoin('events', 'events.id', 'deliveries.event_id')
    .selectAll('deliveries')
    .select('events.type')
    .where('subscription_id', '=', subscriptionId);
}

async function findDelivery(db: Database, subscriptionId: string, id: string): Promise<Delivery> {
  const delivery = await selectDeliveries(db, subscriptionId)
    .where('deliveries.id', '=', id)
    .executeTakeFirst();
  if (!delivery) throw notFound('webhook delivery', id);
  return delivery;
}

function deliveryList(db: Database, subscriptionId: string, status: unknown): ListSource<Delivery> {
  return {
    fetch: (afterKey, limit) =>
      selectDeliveries(db, subscriptionId)
        .where('deliveries.sequence', '>', afterKey)
        .$if(status !== undefined, (query) => query.where('deliveries.status', '=', String(status)))
        .orderBy('deliveries.sequence')
        .limit(limit)
        .execute(),
    keyOf: (row) => String(row.sequence),
    toBody: bodyOf,
  };
}

function bodyOf(delivery: Delivery): Record<string, unknown> {
  return {
    id: delivery.id,
    status: delivery.status,
    eventId: delivery.event_id,
    eventType: delivery.type,
    attempts: delivery.attempts,
    createdAt: delivery.created_at.toISOString(),
    ...(delivery.delivered_at && { deliveredAt: delivery.delivered_at.toISOString() }),
  };
}

function attemptBody(attempt: Attempt): Record<string, unknown> {
  return {
    number: attempt.number,
    attemptedAt: attempt.attempted_at.toISOString(),
    durationMs: attempt.duration_ms,
    ...(attempt.response_status !== null && { responseStatus: attempt.response_status }),
    ...(attempt.error !== null && { error: attempt.error }),
  };
}

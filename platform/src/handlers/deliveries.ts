import { type Selectable, sql } from 'kysely';
import type { Database, Tables } from '../database/schema.ts';
import { KEPT_ATTEMPTS } from '../deliveries/attempts.ts';
import { queueDeliveries } from '../deliveries/queue.ts';
import { redactedBody } from '../deliveries/redact.ts';
import type { Call } from '../http/call.ts';
import { invalid, notFound } from '../http/problems.ts';
import type { Handlers } from '../http/routes.ts';
import { timeOf } from '../lists/filters.ts';
import { type ListSource, readPage } from '../lists/page.ts';
import { ok, pathId, type Services } from './services.ts';
import { findOwnedSubscription, findSubscription } from './subscriptions.ts';

type Attempt = Selectable<Tables['delivery_attempts']>;

interface Delivery extends Selectable<Tables['deliveries']> {
  readonly type: string;
  readonly state: string;
}

/** Redelivery requests for one delivery within this time count as one. */
const REDELIVERY_PAUSE_MS = 5000;

/** `/v3/platform/webhook-subscriptions/{subscriptionId}/deliveries`: the delivery log, and redelivery. */
export function deliveryHandlers({ sealer, settings }: Services): Handlers {
  return {
    async listWebhookDeliveries(call, db) {
      const { id } = await findSubscription(db, call);
      const status = call.query['filter[status][eq]'];
      return ok(await readPage(sealer, call, deliveryList(db, id, status), { boundTo: id }));
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
        // Versions before this one kept them all.
        .where((where) =>
          where.or([where('number', '=', 1), where('number', '>', delivery.attempts - (KEPT_ATTEMPTS - 1))]),
        )
        .orderBy('number', 'desc')
        .execute();
      const { payload } = await db
        .selectFrom('events')
        .select('payload')
        .where('id', '=', delivery.event_id)
        .executeTakeFirstOrThrow();
      const requestBody = redactedBody(JSON.stringify(payload));
      return ok({ ...bodyOf(delivery), requestBody, log: attempts.map(attemptBody) });
    },
    async redeliverWebhooks(call, db) {
      const { id } = await findOwnedSubscription(db, call);
      return { status: 202, body: { queued: await redeliverRange(db, id, toRange(call), settings.now()) } };
    },
    async redeliverWebhook(call, db) {
      const subscription = await findOwnedSubscription(db, call);
      const delivery = await findDelivery(db, subscription.id, pathId(call, 'deliveryId'));
      await redeliver(db, delivery, settings.now());
      return { status: 202, body: bodyOf(await findDelivery(db, subscription.id, delivery.id)) };
    },
  };
}

/** Deliveries with their state: `Pending` while they are queued, `Held` if their subscription is paused then. */
function selectDeliveries(db: Database, subscriptionId: string) {
  return db
    .selectFrom('deliveries')
    .innerJoin('events', 'events.id', 'deliveries.event_id')
    .innerJoin('subscriptions', 'subscriptions.id', 'deliveries.subscription_id')
    .leftJoin('delivery_queue', 'delivery_queue.delivery_id', 'deliveries.id')
    .selectAll('deliveries')
    .select(['events.type', STATE.as('state')])
    .where('deliveries.subscription_id', '=', subscriptionId);
}

const STATE = sql<string>`case
  when delivery_queue.delivery_id is null then deliveries.status
  when subscriptions.status = 'Active' then 'Pending'
  else 'Held' end`;

/** Queues a delivery again unless it is queued, or was a moment ago, so that parallel requests send one copy. */
async function redeliver(db: Database, delivery: Delivery, now: Date): Promise<void> {
  const { numUpdatedRows } = await db
    .updateTable('deliveries')
    .set({ redelivered_at: now })
    .where('id', '=', delivery.id)
    .where((where) =>
      where.or([
        where('redelivered_at', 'is', null),
        where('redelivered_at', '<=', new Date(now.getTime() - REDELIVERY_PAUSE_MS)),
      ]),
    )
    .executeTakeFirst();
  if (numUpdatedRows > 0n) await queueDeliveries(db, [delivery], now);
}

interface Range {
  readonly from: Date;
  readonly to: Date;
  readonly status: string;
}

function toRange({ body }: Call): Range {
  const { from, to, status = 'Failed' } = body as { from: string; to: string; status?: string };
  const range = { from: timeOf(from, 'from'), to: timeOf(to, 'to'), status };
  if (range.from >= range.to) throw invalid('to', 'must be later than from');
  return range;
}

/** Queues the deliveries of events in a time range again, by the rules of `redeliver`. Returns their number. */
async function redeliverRange(
  db: Database,
  subscriptionId: string,
  range: Range,
  now: Date,
): Promise<number> {
  const pause = new Date(now.getTime() - REDELIVERY_PAUSE_MS);
  const { rows } = await sql<{ queued: number }>`
    with chosen as (
      update deliveries set redelivered_at = ${now}
      where subscription_id = ${subscriptionId} and status = ${range.status}
        and created_at >= ${range.from} and created_at < ${range.to}
        and (redelivered_at is null or redelivered_at <= ${pause})
      returning id
    ), queued as (
      insert into delivery_queue (delivery_id, subscription_id, due_at)
      select id, ${subscriptionId}, ${now} from chosen on conflict do nothing
      returning delivery_id
    )
    select count(*)::int as queued from queued
  `.execute(db);
  return rows[0]?.queued ?? 0;
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
        // Newest first.
        .$if(afterKey !== '0', (query) => query.where('deliveries.sequence', '<', afterKey))
        .$if(status !== undefined, (query) => query.where(STATE, '=', String(status)))
        .orderBy('deliveries.sequence', 'desc')
        .limit(limit)
        .execute(),
    keyOf: (row) => String(row.sequence),
    toBody: bodyOf,
  };
}

function bodyOf(delivery: Delivery): Record<string, unknown> {
  return {
    id: delivery.id,
    status: delivery.state,
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
    ...(attempt.response_body !== null && { responseBody: attempt.response_body }),
    ...(attempt.error !== null && { error: attempt.error }),
  };
}

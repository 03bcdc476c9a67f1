import { randomBytes, randomUUID } from 'node:crypto';
import type { Selectable } from 'kysely';
import type { Database, Tables } from '../database/schema.ts';
import { refusalOfUrl } from '../deliveries/addresses.ts';
import { DELIVERY_QUEUE } from '../deliveries/relay.ts';
import type { Scope } from '../events/catalog.ts';
import { checkSubscribedEvents } from '../events/subscribed.ts';
import type { Call } from '../http/call.ts';
import { invalid, notFound } from '../http/problems.ts';
import type { Handlers } from '../http/routes.ts';
import type { Jobs } from '../jobs/queue.ts';
import { type ListSource, readPage } from '../lists/page.ts';
import { ok, pathId, type Services } from './services.ts';

type Subscription = Selectable<Tables['subscriptions']>;

interface SubscriptionBody {
  readonly url: string;
  readonly subscribedEvents: string[];
  readonly scope?: Scope;
  readonly description?: string;
  readonly status?: 'Active' | 'Paused';
}

const SECRET_BYTES = 32;

/** `/v3/platform/webhook-subscriptions` (contract section 6.1). */
export function subscriptionHandlers({ jobs, sealer, settings }: Services): Handlers {
  const { allowPrivate } = settings.deliveries;
  return {
    async createWebhookSubscription(call, db) {
      const { url, subscribedEvents, scope = 'Account', description = null } = call.body as SubscriptionBody;
      check({ url, subscribedEvents }, allowPrivate);
      const now = settings.now();
      const secret = `whsec_${randomBytes(SECRET_BYTES).toString('base64')}`;
      const subscription = await db
        .insertInto('subscriptions')
        .values({
          id: `sub_${randomUUID()}`,
          ...{ scope_type: scope, scope_id: scopeIdOf(call, scope), url, description, secret },
          ...{ subscribed_events: JSON.stringify(subscribedEvents), status: 'Active', paused_reason: null },
          ...{ created_at: now, updated_at: now },
        })
        .returningAll()
        .executeTakeFirstOrThrow();
      return { status: 201, body: { ...bodyOf(subscription), secret } };
    },
    listWebhookSubscriptions: async (call, db) =>
      ok(await readPage(sealer, call, subscriptionList(db, call))),
    getWebhookSubscription: async (call, db) => ok(bodyOf(await findSubscription(db, call))),
    async updateWebhookSubscription(call, db) {
      const { id } = await findSubscription(db, call);
      const { url, subscribedEvents, description, status } = call.body as Partial<SubscriptionBody>;
      check(call.body as Partial<SubscriptionBody>, allowPrivate);
      const updated = await db
        .updateTable('subscriptions')
        .set({
          updated_at: settings.now(),
          ...(url !== undefined && { url }),
          ...(description !== undefined && { description }),
          ...(subscribedEvents && { subscribed_events: JSON.stringify(subscribedEvents) }),
          ...(status === 'Paused' && { status, paused_reason: 'ByRequest' }),
          ...(status === 'Active' && { status, paused_reason: null, consecutive_failures: 0 }),
        })
        .where('id', '=', id)
        .returningAll()
        .executeTakeFirstOrThrow();
      if (status === 'Active') await sendHeld(jobs, db, id);
      return ok(bodyOf(updated));
    },
    async deleteWebhookSubscription(call, db) {
      const { id } = await findSubscription(db, call);
      await db.deleteFrom('subscriptions').where('id', '=', id).execute();
      return { status: 204 };
    },
  };
}

function check({ url, subscribedEvents }: Partial<SubscriptionBody>, allowPrivate: boolean): void {
  const refusal = url === undefined ? undefined : refusalOfUrl(url, allowPrivate);
  if (refusal) throw invalid('url', refusal);
  if (subscribedEvents) checkSubscribedEvents(subscribedEvents);
}

/** What happened while the subscription was paused goes out now. */
async function sendHeld(jobs: Jobs, db: Database, subscriptionId: string): Promise<void> {
  const held = await db
    .updateTable('deliveries')
    .set({ status: 'Pending' })
    .where('subscription_id', '=', subscriptionId)
    .where('status', '=', 'Held')
    .returning('id')
    .execute();
  await jobs.enqueue(
    db,
    DELIVERY_QUEUE,
    held.map(({ id }) => ({ data: { deliveryId: id } })),
  );
}

/** The subscription of the path, when it belongs to the acting Account, its Organization or the principal. */
export async function findSubscription(db: Database, call: Call): Promise<Subscription> {
  const id = pathId(call, 'subscriptionId');
  const subscription = await selectVisible(db, call).selectAll().where('id', '=', id).executeTakeFirst();
  if (!subscription) throw notFound('webhook subscription', id);
  return subscription;
}

function selectVisible(db: Database, { caller }: Call) {
  return db
    .selectFrom('subscriptions')
    .where((where) =>
      where.or([
        where.and({ scope_type: 'Account', scope_id: caller.accountId }),
        where.and({ scope_type: 'Person', scope_id: caller.principalId }),
        where.and({ scope_type: 'Organization', scope_id: caller.organizationId ?? '' }),
      ]),
    );
}

function subscriptionList(db: Database, call: Call): ListSource<Subscription> {
  return {
    fetch: (afterKey, limit) =>
      selectVisible(db, call)
        .selectAll()
        .where('sequence', '>', afterKey)
        .orderBy('sequence')
        .limit(limit)
        .execute(),
    keyOf: (row) => String(row.sequence),
    toBody: bodyOf,
  };
}

function scopeIdOf({ caller }: Call, scope: Scope): string {
  if (scope === 'Account') return caller.accountId;
  if (scope === 'Person') {
    if (caller.personId !== undefined) return caller.personId;
    throw invalid('scope', 'is Person, but the caller is a ServiceAccount');
  }
  if (caller.organizationId !== undefined) return caller.organizationId;
  throw invalid('scope', 'is Organization, but the acting Account belongs to none');
}

/** Without the secret, which only the answer to the creation carries. */
function bodyOf(subscription: Subscription): Record<string, unknown> {
  return {
    id: subscription.id,
    status: subscription.status,
    ...(subscription.paused_reason !== null && { pausedReason: subscription.paused_reason }),
    scope: { type: subscription.scope_type, id: subscription.scope_id },
    url: subscription.url,
    ...(subscription.description !== null && { description: subscription.description }),
    subscribedEvents: subscription.subscribed_events,
    createdAt: subscription.created_at.toISOString(),
    updatedAt: subscription.updated_at.toISOString(),
  };
}

import { randomBytes, randomUUID } from 'node:crypto';
import { type Selectable, sql } from 'kysely';
import type { Scope } from '../catalog/resource.ts';
import type { Database, Tables } from '../database/schema.ts';
import { refusalOfNewUrl } from '../deliveries/addresses.ts';
import { hastenDeliveries, hastenProbe, leaveQueue } from '../deliveries/queue.ts';
import { checkSubscribedEvents } from '../events/subscribed.ts';
import type { Call } from '../http/call.ts';
import { invalid, notFound } from '../http/problems.ts';
import type { Handlers } from '../http/routes.ts';
import { type ListSource, readPage } from '../lists/page.ts';
import { scopesOf } from '../resources/visibility.ts';
import { checkOrganizationRights } from './api-keys.ts';
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

/** Of one Account, Organization or Person. If none of their endpoints answers, each holds one slot, and most slots stay free. */
export const MAX_SUBSCRIPTIONS = 50;

export function newSecret(): string {
  return `whsec_${randomBytes(SECRET_BYTES).toString('base64')}`;
}

/** `/v3/platform/webhook-subscriptions` (contract section 6.1). */
export function subscriptionHandlers({ sealer, settings }: Services): Handlers {
  const { allowPrivate, pauseAfterSeconds } = settings.deliveries;
  const bodyOf = (subscription: Subscription) => subscriptionBody(subscription, pauseAfterSeconds);
  return {
    async createWebhookSubscription(call, db) {
      const body = call.body as SubscriptionBody;
      const { url, subscribedEvents, scope = 'Account' } = body;
      check({ url, subscribedEvents }, allowPrivate);
      const now = settings.now();
      const secret = newSecret();
      const scopeId = scopeIdOf(call, scope);
      if (scope === 'Organization') await checkOrganizationRights(db, call.caller);
      await checkRoom(db, scope, scopeId);
      const subscription = await db
        .insertInto('subscriptions')
        .values({ ...newSubscription(body, now), scope_type: scope, scope_id: scopeId, secret })
        .returningAll()
        .executeTakeFirstOrThrow();
      return { status: 201, body: { ...bodyOf(subscription), secret } };
    },
    listWebhookSubscriptions: async (call, db) =>
      ok(await readPage(sealer, call, subscriptionList(db, call, bodyOf))),
    getWebhookSubscription: async (call, db) => ok(bodyOf(await findSubscription(db, call))),
    async updateWebhookSubscription(call, db) {
      const { id, url: earlierUrl } = await lockOwnedSubscription(db, call);
      const { url, subscribedEvents, description, status } = call.body as Partial<SubscriptionBody>;
      check(call.body as Partial<SubscriptionBody>, allowPrivate);
      const now = settings.now();
      const updated = await db
        .updateTable('subscriptions')
        .set({
          updated_at: now,
          ...(url !== undefined && withUrl(url, now)),
          ...(description !== undefined && { description }),
          ...(subscribedEvents && { subscribed_events: JSON.stringify(subscribedEvents) }),
          ...(status === 'Paused' && { status, paused_reason: 'ByRequest', probe_at: null }),
          ...(status === 'Active' && { status, paused_reason: null, failing_since: null, probe_at: null }),
        })
        .where('id', '=', id)
        .returningAll()
        .executeTakeFirstOrThrow();
      if (status === 'Active' || updated.url !== earlierUrl) await tryNow(db, updated, now);
      return ok(bodyOf(updated));
    },
    async deleteWebhookSubscription(call, db) {
      const { id } = await lockOwnedSubscription(db, call);
      // Most of its queue goes while events can still be written, which the lock allows.
      await leaveQueue(db, id);
      await db.deleteFrom('subscriptions').where('id', '=', id).execute();
      // What was queued until it was gone. Its log is left to the hourly deletion of old data.
      await leaveQueue(db, id);
      return { status: 204 };
    },
  };
}

function newSubscription({ url, subscribedEvents, description }: SubscriptionBody, now: Date) {
  return {
    id: `sub_${randomUUID()}`,
    url,
    description: description ?? null,
    subscribed_events: JSON.stringify(subscribedEvents),
    status: 'Active' as const,
    paused_reason: null,
    failing_since: null,
    probe_at: null,
    previous_secret: null,
    previous_secret_until: null,
    created_at: now,
    updated_at: now,
  };
}

/** Sends what waits for a retry, or one delivery of it if the subscription is paused because its endpoint failed. */
async function tryNow(db: Database, { id, status, probe_at }: Subscription, now: Date): Promise<void> {
  if (status === 'Active') await hastenDeliveries(db, id, now);
  else if (probe_at) await hastenProbe(db, id, now);
}

/** A new URL has not failed. If its subscription is paused because the earlier one failed, it is probed now. */
function withUrl(url: string, now: Date) {
  return {
    url,
    failing_since: sql<Date | null>`case when url = ${url} then failing_since end`,
    probe_at: sql<Date | null>`case when url = ${url} or probe_at is null then probe_at else ${now} end`,
  };
}

/** Throws a 422 if the Account, Organization or Person has as many subscriptions as it may have. */
async function checkRoom(db: Database, scope: Scope, scopeId: string): Promise<void> {
  // Until the transaction ends, so that parallel requests count each other's.
  await sql`select pg_advisory_xact_lock(hashtextextended(${`subscriptions of ${scope} ${scopeId}`}, 0))`.execute(
    db,
  );
  const { count } = await db
    .selectFrom('subscriptions')
    .select((fn) => fn.fn.countAll().as('count'))
    .where('scope_type', '=', scope)
    .where('scope_id', '=', scopeId)
    .executeTakeFirstOrThrow();
  if (Number(count) < MAX_SUBSCRIPTIONS) return;
  throw invalid(
    'scope',
    `has ${count} subscriptions; the ${scope} may have ${MAX_SUBSCRIPTIONS}: delete one first`,
  );
}

function check({ url, subscribedEvents }: Partial<SubscriptionBody>, allowPrivate: boolean): void {
  const refusal = url === undefined ? undefined : refusalOfNewUrl(url, allowPrivate);
  if (refusal) throw invalid('url', refusal);
  if (subscribedEvents) checkSubscribedEvents(subscribedEvents);
}

/** The subscription of the path, if it belongs to the acting Account, its Organization or the Person that calls. */
export async function findSubscription(db: Database, call: Call, isLocked = false): Promise<Subscription> {
  const id = pathId(call, 'subscriptionId');
  const subscription = await selectVisible(db, call)
    .selectAll()
    .where('id', '=', id)
    .$if(isLocked, (query) => query.forNoKeyUpdate())
    .executeTakeFirst();
  if (!subscription) throw notFound('webhook subscription', id);
  return subscription;
}

/** The subscription of the path, for a write. Throws a 403 for a ServiceAccount of an Account if the Organization owns it. */
export async function findOwnedSubscription(
  db: Database,
  call: Call,
  isLocked = false,
): Promise<Subscription> {
  const subscription = await findSubscription(db, call, isLocked);
  if (subscription.scope_type === 'Organization') await checkOrganizationRights(db, call.caller);
  return subscription;
}

/**
 * As `findOwnedSubscription`, locked until `db`'s transaction ends, because another request may be deleting it. Whatever locks a
 * subscription and its queue locks the subscription first.
 */
export function lockOwnedSubscription(db: Database, call: Call): Promise<Subscription> {
  return findOwnedSubscription(db, call, true);
}

function selectVisible(db: Database, { caller }: Call) {
  return db
    .selectFrom('subscriptions')
    .where((where) => where.or(scopesOf(caller).map((scope) => where.and(scope))));
}

function subscriptionList(
  db: Database,
  call: Call,
  toBody: (subscription: Subscription) => object,
): ListSource<Subscription> {
  return {
    fetch: (afterKey, limit) =>
      selectVisible(db, call)
        .selectAll()
        .where('sequence', '>', afterKey)
        .orderBy('sequence')
        .limit(limit)
        .execute(),
    keyOf: (row) => String(row.sequence),
    toBody,
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

/**
 * The public form, without the secret, which only the response to the creation contains. While every attempt fails,
 * `failingSince` and `pausesAt` warn that the subscription will be paused.
 */
export function subscriptionBody(
  subscription: Subscription,
  pauseAfterSeconds: number,
): Record<string, unknown> {
  const { failing_since: failingSince, status } = subscription;
  const pausesAtMs = (failingSince?.getTime() ?? 0) + pauseAfterSeconds * 1000;
  return {
    id: subscription.id,
    status,
    ...(subscription.paused_reason !== null && { pausedReason: subscription.paused_reason }),
    ...(failingSince && { failingSince: failingSince.toISOString() }),
    ...(failingSince && status === 'Active' && { pausesAt: new Date(pausesAtMs).toISOString() }),
    scope: { type: subscription.scope_type, id: subscription.scope_id },
    url: subscription.url,
    ...(subscription.description !== null && { description: subscription.description }),
    subscribedEvents: subscription.subscribed_events,
    ...(subscription.previous_secret_until && {
      previousSecretUntil: subscription.previous_secret_until.toISOString(),
    }),
    createdAt: subscription.created_at.toISOString(),
    updatedAt: subscription.updated_at.toISOString(),
  };
}

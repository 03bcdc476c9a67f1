import { sql } from 'kysely';
import { afterEach, beforeEach, describe, expect, inject, test } from 'vitest';
import { type OpenDatabase, openDatabase } from '../src/database/connect.ts';
import { deleteExpired } from '../src/database/retention.ts';
import type { Database } from '../src/database/schema.ts';
import { logAttempts } from '../src/deliveries/attempts.ts';
import {
  type ClaimedDelivery,
  claimDeliveries,
  findWaiting,
  hastenDeliveries,
  queueDeliveries,
} from '../src/deliveries/queue.ts';
import { type Platform, startPlatform } from '../src/server.ts';
import { settleOptions } from '../src/settings.ts';
import { ACCT_1, type Client, createClient, type Reply, trigger } from './fixtures/client.ts';
import { createDemoDatabase } from './fixtures/demo-database.ts';

const serverUrl = inject('postgresUrl');
const { deliveries: SETTINGS } = settleOptions({ host: '', port: 0 });

// An embedded database has one connection, so nothing is parallel there.
describe.runIf(serverUrl !== undefined)('on PostgreSQL', () => {
  let database: OpenDatabase;
  let platform: Platform;
  let client: Client;
  beforeEach(async () => {
    const settings = { kind: 'postgres', url: await createDemoDatabase(serverUrl ?? '') } as const;
    let nowMs = Date.now();
    platform = await startPlatform({
      host: '127.0.0.1',
      port: 0,
      database: settings,
      seed: true,
      triggers: true,
      // No two times are equal.
      now: () => new Date(nowMs++),
    });
    client = createClient(platform.url, ACCT_1);
    database = await openDatabase(settings);
  });
  afterEach(async () => {
    await platform.close();
    await database.close();
  });

  /** Sends two equal writes while a row is locked, and lets them go on once both wait for it. */
  async function twice(table: 'resources' | 'subscriptions', id: string, path: string): Promise<Reply[]> {
    const answers: Promise<Reply>[] = [];
    await database.db.transaction().execute(async (trx) => {
      await trx.selectFrom(table).select('id').where('id', '=', id).forUpdate().execute();
      answers.push(client.send('POST', path), client.send('POST', path));
      await untilWaiting(database.db, 2);
    });
    return Promise.all(answers);
  }

  test('of two rotations of a secret, each signs with the secret that it answered', async () => {
    const { id } = await subscribe(client);
    const answers = await twice(
      'subscriptions',
      id,
      `/v3/platform/webhook-subscriptions/${id}/rotate-secret`,
    );
    const { secret, previous_secret } = await database.db
      .selectFrom('subscriptions')
      .select(['secret', 'previous_secret'])
      .executeTakeFirstOrThrow();
    expect([previous_secret, secret].sort()).toEqual(answers.map(({ body }) => body.secret).sort());
  });

  test('of two revocations of a key, both succeed', async () => {
    const { body } = await client.send('POST', '/v3/platform/api-keys', { name: 'Nightly export' });
    const answers = await twice('resources', body.id, `/v3/platform/api-keys/${body.id}/revoke`);
    expect(answers.map(({ status }) => status)).toEqual([200, 200]);
  });

  test('of two submissions of a tax form, the second one changes nothing', async () => {
    const [form] = await client.walk('/v3/compliance/tax-forms?filter[status][eq]=Draft');
    const id = form?.id ?? '';
    const [one, other] = await twice('resources', id, `/v3/compliance/tax-forms/${id}/submit`);
    expect(one?.body.status).toBe('Submitted');
    expect(one?.body).toEqual(other?.body);
  });

  test('a failed attempt that is logged while another process logs a success leaves the delivery Delivered', async () => {
    const { id } = await subscribe(client, 'Paused');
    await trigger(client, 'Mandate.Created');
    const claim = async () => {
      const later = new Date(Date.now() + 3600_000);
      return claimDeliveries(database.db, new Map([[id, 1]]), later, later);
    };
    const [first, second] = [await claim(), await claim()];
    const failed: Promise<void>[] = [];
    await database.db.transaction().execute(async (trx) => {
      await log(trx, first, true);
      failed.push(log(database.db, second, false));
      await untilWaiting(database.db, 1);
    });
    await Promise.all(failed);
    const delivery = await database.db.selectFrom('deliveries').selectAll().executeTakeFirstOrThrow();
    expect(delivery).toMatchObject({ status: 'Delivered', attempts: 2 });
    expect(await database.db.selectFrom('delivery_queue').selectAll().execute()).toEqual([]);
  });

  test('a subscription is deleted while its log is locked, and the log cannot be read from then on', async () => {
    const { id } = await subscribe(client, 'Paused');
    await trigger(client, 'Mandate.Created');
    const path = `/v3/platform/webhook-subscriptions/${id}`;
    const [held] = await client.walk(`${path}/deliveries`);
    await database.db.transaction().execute(async (trx) => {
      await trx.selectFrom('deliveries').select('id').forUpdate().execute();
      expect((await client.send('DELETE', path)).status).toBe(204);
    });
    for (const read of [`${path}/deliveries`, `${path}/deliveries/${held?.id}`])
      expect((await client.get(read)).status).toBe(404);
    // A redelivery that began before the deletion.
    await queueDeliveries(
      database.db,
      [{ id: held?.id ?? '', subscription_id: id }],
      new Date(Date.now() - 1000),
    );
    expect(await findWaiting(database.db, new Date())).toEqual([]);
    await deleteExpired(database.db, new Date());
    for (const table of ['deliveries', 'delivery_queue'] as const)
      expect([table, await database.db.selectFrom(table).selectAll().execute()]).toEqual([table, []]);
  });

  test('a change, a new secret and a second deletion of a subscription that is deleted meanwhile are a 404', async () => {
    const { id } = await subscribe(client);
    const path = `/v3/platform/webhook-subscriptions/${id}`;
    const answers: Promise<Reply>[] = [];
    await database.db.transaction().execute(async (trx) => {
      await trx.deleteFrom('subscriptions').where('id', '=', id).execute();
      answers.push(client.send('PATCH', path, { description: 'Nightly' }));
      answers.push(client.send('POST', `${path}/rotate-secret`), client.send('DELETE', path));
      await untilWaiting(database.db, 3);
    });
    expect((await Promise.all(answers)).map(({ status }) => status)).toEqual([404, 404, 404]);
  });

  test('a subscription is deleted while it is changed and its deliveries are hastened', async () => {
    const { id } = await subscribe(client, 'Paused');
    await trigger(client, 'Mandate.Created');
    const deleted: Promise<Reply>[] = [];
    await database.db.transaction().execute(async (trx) => {
      await trx.updateTable('subscriptions').set({ description: 'changed' }).where('id', '=', id).execute();
      deleted.push(client.send('DELETE', `/v3/platform/webhook-subscriptions/${id}`));
      await untilWaiting(database.db, 1);
      await hastenDeliveries(trx, id, new Date());
    });
    expect((await Promise.all(deleted)).map(({ status }) => status)).toEqual([204]);
  });

  test('a success is logged while its failing subscription is changed and its queue with it', async () => {
    const { id } = await subscribe(client, 'Paused');
    await trigger(client, 'Mandate.Created');
    const later = new Date(Date.now() + 3600_000);
    const claimed = await claimDeliveries(database.db, new Map([[id, 1]]), later, later);
    const active = claimed.map((delivery) => ({ ...delivery, isProbe: false }));
    await database.db
      .updateTable('subscriptions')
      .set({ status: 'Active', failing_since: new Date() })
      .where('id', '=', id)
      .execute();
    const logged: Promise<void>[] = [];
    await database.db.transaction().execute(async (trx) => {
      await trx.updateTable('subscriptions').set({ description: 'changed' }).where('id', '=', id).execute();
      logged.push(log(database.db, active, true));
      await untilWaiting(database.db, 1);
      await trx
        .updateTable('delivery_queue')
        .set({ failures: 1 })
        .where('subscription_id', '=', id)
        .execute();
    });
    await Promise.all(logged);
    const read = database.db.selectFrom('subscriptions').select('failing_since').where('id', '=', id);
    expect(await read.executeTakeFirst()).toEqual({ failing_since: null });
    expect(await database.db.selectFrom('delivery_queue').selectAll().execute()).toEqual([]);
  });

  /** Claims ten deliveries of a paused subscription, in the order of their ids. Their order in the table is the opposite one. */
  async function claimTen(id: string): Promise<ClaimedDelivery[]> {
    for (let i = 0; i < 10; i++) await trigger(client, 'Mandate.Created');
    await expect
      .poll(() => database.db.selectFrom('delivery_queue').select('delivery_id').execute())
      .toHaveLength(10);
    await sql`
      with taken as (delete from delivery_queue returning *)
      insert into delivery_queue (delivery_id, subscription_id, due_at)
      select delivery_id, subscription_id, due_at - row_number() over (order by delivery_id) * interval '1 second'
      from taken order by delivery_id desc
    `.execute(database.db);
    const later = new Date(Date.now() + 3600_000);
    const claimed = await claimDeliveries(database.db, new Map([[id, 10]]), later, later);
    expect(claimed.length).toBe(10);
    return claimed.sort((one, other) => (one.deliveryId < other.deliveryId ? -1 : 1));
  }

  const lockQueued = (trx: Database, locked: readonly ClaimedDelivery[]) =>
    trx
      .selectFrom('delivery_queue')
      .select('delivery_id')
      .where(
        'delivery_id',
        'in',
        locked.map(({ deliveryId }) => deliveryId),
      )
      .forUpdate()
      .execute();

  test.each(['deleted', 'logged', 'hastened'] as const)(
    'deliveries that are %s are locked in the order of their ids, so that no two transactions wait for each other',
    async (what) => {
      const { id } = await subscribe(client, 'Paused');
      const claimed = await claimTen(id);
      const others = claimed.slice(1);
      const begin = {
        deleted: () => client.send('DELETE', `/v3/platform/webhook-subscriptions/${id}`),
        hastened: () => hastenDeliveries(database.db, id, new Date(Date.now() + 7200_000)),
        logged: () => log(database.db, claimed.toReversed(), true),
      };
      const done: Promise<unknown>[] = [];
      await database.db.transaction().execute(async (trx) => {
        // A deadlock would end this transaction, and not the other one.
        await sql`set local deadlock_timeout = '10ms'`.execute(trx);
        await lockQueued(trx, claimed.slice(0, 1));
        done.push(begin[what]());
        await untilWaiting(database.db, 1);
        await lockQueued(trx, others);
      });
      await Promise.all(done);
    },
  );

  test('of two hundred attempts that an earlier version kept, the first one and the last 49 are shown', async () => {
    const { id } = await subscribe(client, 'Paused');
    await trigger(client, 'Mandate.Created');
    await sql`
      insert into delivery_attempts (delivery_id, number, attempted_at, duration_ms)
      select id, number, now(), 1 from deliveries, generate_series(1, 200) number
    `.execute(database.db);
    await database.db.updateTable('deliveries').set({ attempts: 200 }).execute();
    const path = `/v3/platform/webhook-subscriptions/${id}/deliveries`;
    const [delivery] = await client.walk(path);
    const { log: shown } = (await client.get(`${path}/${delivery?.id}`)).body;
    const numbers = (shown as { number: number }[]).map(({ number }) => number);
    expect(numbers).toEqual([...Array.from({ length: 49 }, (_, index) => 200 - index), 1]);
  });

  test('attempts whose log PostgreSQL refuses because of a deadlock are logged again', async () => {
    const { id } = await subscribe(client, 'Paused');
    const claimed = await claimTen(id);
    const done: Promise<unknown>[] = [];
    await database.db.transaction().execute(async (trx) => {
      // The deadlock ends the other transaction.
      await sql`set local deadlock_timeout = '1min'`.execute(trx);
      await lockQueued(trx, claimed.slice(-1));
      done.push(log(database.db, claimed, true));
      await untilWaiting(database.db, 1);
      await lockQueued(trx, claimed.slice(0, 1));
    });
    await Promise.all(done);
    const logged = await database.db.selectFrom('delivery_attempts').select('delivery_id').execute();
    expect(logged.length).toBe(10);
  });

  test.each([
    ['the next retry is due at once', SETTINGS.maxAttempts],
    ['the delivery has not failed', 1],
  ])('if the URL is changed while the failure at the earlier one is logged, %s', async (_, maxAttempts) => {
    const { id } = await subscribe(client, 'Paused');
    await trigger(client, 'Mandate.Created');
    const later = new Date(Date.now() + 3600_000);
    const claimed = await claimDeliveries(database.db, new Map([[id, 1]]), later, later);
    // As of an active subscription that is being sent it.
    const active = claimed.map((delivery) => ({ ...delivery, isProbe: false }));
    await database.db.updateTable('delivery_queue').set({ leased_until: later }).execute();
    const logged: Promise<void>[] = [];
    await database.db.transaction().execute(async (trx) => {
      await trx
        .updateTable('subscriptions')
        .set({ url: 'https://example.com/new' })
        .where('id', '=', id)
        .execute();
      await hastenDeliveries(trx, id, new Date());
      logged.push(log(database.db, active, false, { ...SETTINGS, maxAttempts }));
      await untilWaiting(database.db, 1);
    });
    await Promise.all(logged);
    const { status } = await database.db.selectFrom('deliveries').select('status').executeTakeFirstOrThrow();
    const queued = await database.db.selectFrom('delivery_queue').select('due_at').execute();
    expect([status, queued.map(({ due_at }) => due_at <= new Date(Date.now() + 100))]).toEqual([
      'Pending',
      [true],
    ]);
  });

  const SEARCH = '/v3/search/payees?page[mode]=materialized&page[size]=5';

  test('a page of a frozen search that is deleted meanwhile is a 404, and not the end of the results', async () => {
    const { resultSetId, nextPageToken } = (await client.get(SEARCH)).body.pagination;
    const answers: Promise<Reply>[] = [];
    await database.db.transaction().execute(async (trx) => {
      await sql`lock table search_snapshot_rows in access exclusive mode`.execute(trx);
      answers.push(client.get(`${SEARCH}&page[token]=${nextPageToken}`));
      await untilWaiting(database.db, 1);
      await trx.deleteFrom('search_snapshots').where('id', '=', resultSetId).execute();
    });
    const [answer] = await Promise.all(answers);
    expect([answer?.status, answer?.body.code]).toEqual([404, 'ResourceNotFound']);
  });

  test('searches that are frozen at once leave twenty', async () => {
    for (let i = 0; i < 20; i++) await client.get(SEARCH);
    const answers: Promise<Reply>[] = [];
    await database.db.transaction().execute(async (trx) => {
      await sql`lock table search_snapshots in share mode`.execute(trx);
      answers.push(...Array.from({ length: 5 }, () => client.get(SEARCH)));
      await untilWaiting(database.db, 5);
    });
    const made = (await Promise.all(answers)).map(({ body }) => body.pagination.resultSetId);
    const left = await database.db.selectFrom('search_snapshots').select('id').execute();
    expect(left.length).toBe(20);
    expect(left.map(({ id }) => id)).toEqual(expect.arrayContaining(made));
  });

  test('what was queued again while it was deleted leaves the queue', async () => {
    const { id } = await subscribe(client, 'Paused');
    await queueDeliveries(database.db, [{ id: 'dlv_deleted', subscription_id: id }], new Date());
    await deleteExpired(database.db, new Date());
    expect(await database.db.selectFrom('delivery_queue').selectAll().execute()).toEqual([]);
  });
});

async function subscribe(client: Client, status = 'Active'): Promise<{ readonly id: string }> {
  const path = '/v3/platform/webhook-subscriptions';
  const created = await client.send('POST', path, {
    url: 'https://example.com/',
    subscribedEvents: ['Mandate.*'],
  });
  await client.send('PATCH', `${path}/${created.body.id}`, { status });
  return created.body;
}

function log(
  db: Database,
  deliveries: readonly ClaimedDelivery[],
  isDelivered: boolean,
  settings = SETTINGS,
): Promise<void> {
  if (deliveries.length === 0) throw new Error('nothing was claimed');
  const responseStatus = isDelivered ? 204 : 500;
  const error = isDelivered ? null : 'refused';
  const outcome = { isDelivered, responseStatus, responseBody: null, error, durationMs: 1 };
  const attempts = deliveries.map((delivery) => ({ delivery, attemptedAt: new Date(), outcome }));
  return logAttempts(db, settings, attempts, new Date());
}

/** Resolves once so many other connections wait for a lock. */
async function untilWaiting(db: Database, count: number): Promise<void> {
  const waiting = () =>
    sql<{ count: number }>`
      select count(*)::int as count from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock'
    `.execute(db);
  await expect.poll(async () => (await waiting()).rows[0]?.count).toBe(count);
}

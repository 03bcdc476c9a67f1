import { sql } from 'kysely';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type OpenDatabase, openDatabase } from '../src/database/connect.ts';
import { deleteExpired } from '../src/database/retention.ts';
import { KEPT_ATTEMPTS, logAttempts } from '../src/deliveries/attempts.ts';
import { recordHealth } from '../src/deliveries/endpoint-health.ts';
import { queueEvents } from '../src/deliveries/fan-out.ts';
import {
  type ClaimedDelivery,
  claimDeliveries,
  findWaiting,
  queueDeliveries,
} from '../src/deliveries/queue.ts';
import { settleOptions } from '../src/settings.ts';
import { ACCT_1, trigger } from './fixtures/client.ts';
import { databases, type OpenTestDatabase, quickest } from './fixtures/databases.ts';
import { usePlatform } from './fixtures/platform.ts';
import { insertSubscription } from './fixtures/subscription.ts';

const SUBSCRIPTION = 'sub_1';
const { deliveries: SETTINGS } = settleOptions({ host: '', port: 0 });

describe.each(databases)('on $name', ({ open }) => {
  let files: OpenTestDatabase;
  let database: OpenDatabase;
  beforeEach(async () => {
    files = await open();
    database = await openDatabase(files.settings);
    await insertSubscription(database.db, SUBSCRIPTION, 'https://example.com/old');
    await queueEvent('evt_1');
  });
  afterEach(async () => {
    await database.close();
    await files.close();
  });

  async function queueEvent(id: string): Promise<void> {
    const { db } = database;
    const now = new Date();
    const event = { id, type: 'Transfer.Created', scope_type: 'Account', scope_id: 'acct_1' };
    const rest = { resource_id: 'transfer_1', payload: '{}', occurred_at: now, relayed_at: now };
    await db
      .insertInto('events')
      .values({ ...event, ...rest })
      .execute();
    await queueEvents(db, [event], new Date(0));
  }

  /** Claims the delivery at a time when its retry is due, with a lease that has ended already. */
  async function claim(): Promise<ClaimedDelivery> {
    const then = new Date(Date.now() + 3600_000);
    const [claimed] = await claimDeliveries(database.db, new Map([[SUBSCRIPTION, 1]]), then, then);
    if (!claimed) throw new Error('nothing to claim');
    return claimed;
  }

  function attemptOf(delivery: ClaimedDelivery, responseStatus: number, responseBody: string | null = null) {
    const isDelivered = responseStatus === 204;
    const error = isDelivered ? null : 'refused';
    const outcome = { isDelivered, responseStatus, responseBody, error, durationMs: 1 };
    return { delivery, attemptedAt: new Date(), outcome };
  }

  async function log(delivery: ClaimedDelivery, responseStatus: number, settings = SETTINGS): Promise<void> {
    const attempt = attemptOf(delivery, responseStatus);
    await logAttempts(database.db, settings, [attempt], new Date());
    await recordHealth(database.db, settings, [attempt], new Date());
  }

  const moveUrl = () =>
    database.db.updateTable('subscriptions').set({ url: 'https://example.com/new' }).execute();
  const subscription = () => database.db.selectFrom('subscriptions').selectAll().executeTakeFirstOrThrow();

  test('a 410 of an earlier URL does not pause the subscription at its new one', async () => {
    const delivery = await claim();
    await moveUrl();
    await log(delivery, 410);
    expect(await subscription()).toMatchObject({ status: 'Active', failing_since: null });
    await log(await claim(), 410);
    expect(await subscription()).toMatchObject({ status: 'Paused', paused_reason: 'EndpointGone' });
  });

  test('a success at an earlier URL says nothing about the new one, which goes on failing', async () => {
    const delivery = await claim();
    await moveUrl();
    await log(await claim(), 500);
    const { failing_since } = await subscription();
    expect(failing_since).not.toBeNull();
    await log(delivery, 204);
    expect(await subscription()).toMatchObject({ failing_since });
  });

  const delivery = () => database.db.selectFrom('deliveries').selectAll().executeTakeFirstOrThrow();
  const queued = () => database.db.selectFrom('delivery_queue').selectAll().execute();

  test('a delivery that failed at an earlier URL is due at the new one at once, and after a failure there later', async () => {
    const first = await claim();
    await moveUrl();
    const isDue = async () => (await queued()).map(({ due_at }) => due_at <= new Date());
    await log(first, 500);
    expect(await isDue()).toEqual([true]);
    await log(await claim(), 500);
    expect(await isDue()).toEqual([false]);
  });

  test('the last attempt at an earlier URL does not fail the delivery, and the last one at the new URL does', async () => {
    const last = { ...SETTINGS, maxAttempts: 1 };
    const first = await claim();
    await moveUrl();
    await log(first, 500, last);
    const [{ due_at } = { due_at: null }] = await queued();
    expect([(await delivery()).status, due_at !== null && due_at <= new Date()]).toEqual(['Pending', true]);
    await log(await claim(), 500, last);
    expect([(await delivery()).status, await queued()]).toEqual(['Failed', []]);
  });

  test('a second attempt that fails after the first one succeeded leaves the delivery Delivered', async () => {
    const [first, second] = [await claim(), await claim()];
    await log(first, 204);
    const { delivered_at } = await delivery();
    await log(second, 500);
    expect(await delivery()).toMatchObject({ status: 'Delivered', delivered_at, attempts: 2 });
    expect(delivered_at).not.toBeNull();
  });

  test('a second attempt that succeeds after the last one failed makes a Failed delivery Delivered', async () => {
    const [first, second] = [await claim(), await claim()];
    await log(first, 500, { ...SETTINGS, maxAttempts: 1 });
    expect(await delivery()).toMatchObject({ status: 'Failed', delivered_at: null });
    await log(second, 204);
    const after = await delivery();
    expect([after.status, after.delivered_at === null]).toEqual(['Delivered', false]);
  });

  test('a subscription whose endpoint fails is behind one whose delivery came later, until it succeeds', async () => {
    await log(await claim(), 500);
    await insertSubscription(database.db, 'sub_2', 'https://example.com/');
    await queueEvent('evt_2');
    const later = new Date(1);
    await database.db
      .updateTable('delivery_queue')
      .set({ due_at: later })
      .where('subscription_id', '=', 'sub_2')
      .execute();
    const waiting = async () =>
      (await findWaiting(database.db, new Date())).map(({ id, isFailing }) => [id, isFailing]);
    expect(await waiting()).toEqual([
      ['sub_2', false],
      [SUBSCRIPTION, true],
    ]);
    await log(await claim(), 204);
    expect(await waiting()).toEqual([['sub_2', false]]);
    await queueEvent('evt_3');
    expect(await waiting()).toEqual([
      [SUBSCRIPTION, false],
      ['sub_2', false],
    ]);
  });

  test('of many attempts at a delivery, the log keeps the first one and the last ones', async () => {
    await log(await claim(), 500);
    // As of a version that kept them all.
    await sql`
      insert into delivery_attempts (delivery_id, number, attempted_at, duration_ms)
      select id, number, now(), 1 from deliveries, generate_series(2, 200) number
    `.execute(database.db);
    await database.db.updateTable('deliveries').set({ attempts: 200 }).execute();
    const numbers = async () => {
      const rows = await database.db
        .selectFrom('delivery_attempts')
        .select('number')
        .orderBy('number')
        .execute();
      return rows.map(({ number }) => number);
    };
    const last = Array.from({ length: KEPT_ATTEMPTS - 1 }, (_, index) => 201 - (KEPT_ATTEMPTS - 2) + index);
    await log(await claim(), 500);
    expect(await numbers()).toEqual([1, ...last]);
    await log(await claim(), 500);
    expect(await numbers()).toEqual([1, ...last.map((number) => number + 1)]);
  });

  test.each([
    ['EndpointFailing', 30],
    ['EndpointGone', 30],
    ['ByRequest', 90],
  ])(
    'what is held because of %s is removed with its event after %d days, and what waits at an active subscription is not',
    async (reason, days) => {
      const tables = ['events', 'deliveries', 'delivery_queue', 'delivery_attempts'] as const;
      const remaining = () =>
        Promise.all(
          tables.map(async (table) => (await database.db.selectFrom(table).selectAll().execute()).length),
        );
      const now = new Date();
      const inDays = (count: number) => new Date(now.getTime() + count * 24 * 3600_000);
      await log(await claim(), 500);
      await database.db.updateTable('deliveries').set({ created_at: now }).execute();
      await deleteExpired(database.db, inDays(days + 1));
      expect(await remaining()).toEqual([1, 1, 1, 1]);
      await database.db
        .updateTable('subscriptions')
        .set({ status: 'Paused', paused_reason: reason })
        .execute();
      await deleteExpired(database.db, inDays(days - 1));
      expect(await remaining()).toEqual([1, 1, 1, 1]);
      await deleteExpired(database.db, inDays(days + 1));
      expect(await remaining()).toEqual([0, 0, 0, 0]);
    },
  );

  test('an answer that cannot be stored loses no other attempt, and its own attempt is logged without it', async () => {
    const bodies = ['one', 'half \ud83d', 'two', 'nul \0', 'three'];
    for (const index of bodies.keys()) await queueEvent(`evt_other_${index}`);
    const then = new Date(Date.now() + 3600_000);
    const slots = new Map([[SUBSCRIPTION, 1 + bodies.length]]);
    const claimed = await claimDeliveries(database.db, slots, then, then);
    const attempts = claimed.map((one, index) => attemptOf(one, 204, bodies[index] ?? null));
    await logAttempts(database.db, SETTINGS, attempts, new Date());
    const logged = await database.db.selectFrom('delivery_attempts').select('response_body').execute();
    const stored = ['one', 'two', 'three', null, null, null];
    expect(logged.map(({ response_body }) => response_body).sort()).toEqual(stored.sort());
    expect(await queued()).toEqual([]);
  });

  test('a delivery that is sent again and fails is Pending while it is queued, and then Failed', async () => {
    await log(await claim(), 204);
    await queueDeliveries(
      database.db,
      [{ id: (await delivery()).id, subscription_id: SUBSCRIPTION }],
      new Date(0),
    );
    await log(await claim(), 500);
    expect([(await delivery()).status, (await queued()).length]).toEqual(['Pending', 1]);
    await log(await claim(), 500, { ...SETTINGS, maxAttempts: 2 });
    expect([(await delivery()).status, await queued()]).toEqual(['Failed', []]);
  });
});

describe('a new URL, where an endpoint that fails is paused at once', () => {
  const platform = usePlatform(quickest, { deliveries: { pauseAfterSeconds: 0, probeSeconds: 3600 } });

  test('is tried at once, and has not failed; the present URL, sent again, changes nothing', async () => {
    const client = platform.as(ACCT_1);
    const [receiver, path] = await platform.subscribe(client, ['Mandate.Created']);
    receiver.answer = 500;
    await trigger(client, 'Mandate.Created');
    const { failingSince } = await client.poll(path, ({ status }) => status === 'Paused');
    const same = await client.send('PATCH', path, { url: receiver.url });
    expect([same.body.status, same.body.failingSince]).toEqual(['Paused', failingSince]);
    receiver.answer = 204;
    const moved = await client.send('PATCH', path, { url: `${receiver.url}new` });
    expect([moved.body.status, moved.body.failingSince]).toEqual(['Paused', undefined]);
    await client.poll(path, ({ status }) => status === 'Active');
  });
});

describe('where the next retry is hours away', () => {
  const LATE = { retryBaseSeconds: 3600, maxAttempts: 12 };
  const active = usePlatform(quickest, { deliveries: LATE });
  const paused = usePlatform(quickest, { deliveries: { ...LATE, pauseAfterSeconds: 0, probeSeconds: 0.2 } });

  test('a new URL is tried at once', async () => {
    const client = active.as(ACCT_1);
    const [receiver, path] = await active.subscribe(client, ['Mandate.Created']);
    receiver.answer = 500;
    await trigger(client, 'Mandate.Created');
    await client.poll(path, ({ failingSince }) => failingSince !== undefined);
    receiver.answer = 204;
    await client.send('PATCH', path, { url: `${receiver.url}new` });
    await client.poll(`${path}/deliveries`, ({ data }) => data[0]?.status === 'Delivered');
  });

  test('a subscription that is paused because its endpoint fails is probed, and resumes', async () => {
    const client = paused.as(ACCT_1);
    const [receiver, path] = await paused.subscribe(client, ['Mandate.Created']);
    receiver.answer = 500;
    await trigger(client, 'Mandate.Created');
    await client.poll(path, ({ status }) => status === 'Paused');
    receiver.answer = 204;
    await client.poll(path, ({ status }) => status === 'Active');
    await client.poll(`${path}/deliveries`, ({ data }) => data[0]?.status === 'Delivered');
  });
});

import pg from 'pg';
import { afterEach, beforeEach, describe, expect, inject, test } from 'vitest';
import { openDatabase } from '../src/database/connect.ts';
import { deleteExpired } from '../src/database/retention.ts';
import { type Platform, startPlatform } from '../src/server.ts';
import type { PlatformOptions } from '../src/settings.ts';
import { ACCT_1, createClient, trigger } from './fixtures/client.ts';
import { createDatabase } from './fixtures/postgres.ts';
import { type Receiver, startReceiver } from './fixtures/receiver.ts';

const serverUrl = inject('postgresUrl');

// Two processes cannot open one embedded database, and without PostgreSQL the set-up of the run has said so.
describe.runIf(serverUrl !== undefined)('on PostgreSQL', () => {
  let url: string;
  let platforms: Platform[] = [];
  let receiver: Receiver;
  beforeEach(async () => {
    url = await createDatabase(serverUrl ?? '');
    receiver = await startReceiver();
  });
  afterEach(async () => {
    await Promise.all(platforms.map((platform) => platform.close()));
    await receiver.close();
  });

  /** Starts so many at once. */
  async function start(count: number, timeoutMs = 1000): Promise<void> {
    const options: PlatformOptions = {
      host: '127.0.0.1',
      port: 0,
      logLevel: 'silent',
      database: { kind: 'postgres', url },
      seed: true,
      triggers: true,
      sweepSeconds: 1,
      deliveries: { allowPrivate: true, retryBaseSeconds: 1, timeoutMs },
    };
    platforms = await Promise.all(Array.from({ length: count }, () => startPlatform(options)));
  }

  async function subscribe(): Promise<void> {
    const body = { url: receiver.url, subscribedEvents: ['Transfer.*'] };
    const client = createClient(platforms[0]?.url ?? '', ACCT_1);
    const { body: created } = await client.send('POST', '/v3/platform/webhook-subscriptions', body);
    receiver.secrets.push(created.secret);
  }

  test('three that start at once migrate and seed once, and each event goes out once', async () => {
    // An attempt that a busy machine makes late is no failure, after which the event would go out again.
    await start(3, 60_000);
    await subscribe();
    const clients = platforms.map((platform) => createClient(platform.url, ACCT_1));
    for (const client of clients) expect((await client.walk('/v3/payments/payees')).length).toBe(60);
    const ids = await Promise.all(
      Array.from({ length: 30 }, (_, i) =>
        trigger(createClient(platforms[i % 3]?.url ?? '', ACCT_1), 'Transfer.Created'),
      ),
    );
    await receiver.untilAbout(ids);
    expect(receiver.received.length).toBe(30);
    const [first, second] = clients;
    const page = await first?.get('/v3/payments/payees?page[size]=5');
    const next = await second?.get(`/v3/payments/payees?page[token]=${page?.body.pagination.nextPageToken}`);
    expect(next?.status).toBe(200);
  });

  test('the settings of a database neither change how times are read nor let parallel writes fail', async () => {
    const admin = new pg.Client({ connectionString: url });
    await admin.connect();
    const name = admin.escapeIdentifier(admin.database ?? '');
    await admin.query(`alter database ${name} set datestyle to 'SQL, DMY'`);
    await admin.query(`alter database ${name} set default_transaction_isolation to 'serializable'`);
    await admin.end();
    await start(1);
    const client = createClient(platforms[0]?.url ?? '', ACCT_1);
    const create = () =>
      client.send('POST', '/v3/payments/payees', { name: 'Ada' }, { 'idempotency-key': 'k' });
    const answers = await Promise.all(Array.from({ length: 8 }, create));
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 201));
  });

  test('connections that break are replaced, and deliveries go on', async () => {
    await start(1);
    await subscribe();
    const client = createClient(platforms[0]?.url ?? '', ACCT_1);
    const before = await trigger(client, 'Transfer.Created');
    const admin = new pg.Client({ connectionString: url });
    await admin.connect();
    await admin.query(
      'select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() and datname = current_database()',
    );
    await admin.end();
    await client.poll('/v3/payments/payees', ({ data }) => data?.length === 25);
    const after = await trigger(client, 'Transfer.Completed');
    await receiver.untilAbout([before, after]);
  });

  test('what is old is deleted, and what still waits to go out is kept', async () => {
    await start(1);
    const { db, close } = await openDatabase({ kind: 'postgres', url });
    await subscribe();
    const client = createClient(platforms[0]?.url ?? '', ACCT_1);
    const [subscription] = await client.walk('/v3/platform/webhook-subscriptions');
    const deliveries = `/v3/platform/webhook-subscriptions/${subscription?.id}/deliveries`;
    await trigger(client, 'Transfer.Created');
    await client.poll(deliveries, ({ data }) => data[0]?.status === 'Delivered');
    await client.send('PATCH', `/v3/platform/webhook-subscriptions/${subscription?.id}`, {
      status: 'Paused',
    });
    await trigger(client, 'Transfer.Completed');
    await client.poll(deliveries, ({ data }) => data[0]?.status === 'Held');
    const key = { 'idempotency-key': 'k' };
    await client.send('POST', '/v3/platform/sessions', undefined, key);
    await deleteExpired(db, new Date(Date.now() + 31 * 24 * 3600 * 1000));
    expect((await client.walk(deliveries)).map(({ status }) => status)).toEqual(['Held']);
    expect((await db.selectFrom('idempotency_keys').selectAll().execute()).length).toBe(0);
    expect((await db.selectFrom('events').select('type').execute()).map(({ type }) => type)).toEqual([
      'Transfer.Completed',
    ]);
    await close();
  });

  test('a subscription leaves nothing behind once old data was deleted, and events without deliveries of an earlier version are sent', async () => {
    await start(1);
    const { db, close } = await openDatabase({ kind: 'postgres', url });
    await subscribe();
    const client = createClient(platforms[0]?.url ?? '', ACCT_1);
    const [subscription] = await client.walk('/v3/platform/webhook-subscriptions');
    const path = `/v3/platform/webhook-subscriptions/${subscription?.id}`;
    const id = await trigger(client, 'Transfer.Created');
    await receiver.untilAbout([id]);
    await client.poll(`${path}/deliveries`, ({ data }) => data[0]?.status === 'Delivered');
    // As a process of an earlier version writes one.
    const payload = { data: { id: 'transfer_old', status: 'Created' }, type: 'Transfer.Created' };
    await db
      .insertInto('events')
      .values({
        id: 'evt_old',
        occurrence_id: 'occ_old',
        type: payload.type,
        resource_id: payload.data.id,
        scope_type: 'Account',
        scope_id: 'acct_1',
        payload: JSON.stringify(payload),
        occurred_at: new Date(),
        relayed_at: null,
      })
      .execute();
    await receiver.untilAbout(['transfer_old']);
    await client.poll(`${path}/deliveries`, ({ data }) => data.every(({ status }) => status === 'Delivered'));
    await client.send('PATCH', path, { status: 'Paused' });
    await trigger(client, 'Transfer.Completed');
    expect((await client.send('DELETE', path)).status).toBe(204);
    expect(await db.selectFrom('delivery_queue').selectAll().execute()).toEqual([]);
    await deleteExpired(db, new Date());
    for (const table of ['deliveries', 'delivery_queue', 'delivery_attempts'] as const)
      expect([table, await db.selectFrom(table).selectAll().execute()]).toEqual([table, []]);
    await close();
  });
});

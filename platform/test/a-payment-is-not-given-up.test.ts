import { sql } from 'kysely';
import { afterEach, beforeEach, describe, expect, inject, test } from 'vitest';
import { type OpenDatabase, openDatabase } from '../src/database/connect.ts';
import { type Platform, startPlatform } from '../src/server.ts';
import { ACCT_1, type Client, createClient, trigger } from './fixtures/client.ts';
import { createDemoDatabase } from './fixtures/demo-database.ts';

const serverUrl = inject('postgresUrl');
const PAYABLE = '/v3/payments/payables/payable_1001';
const MOVEMENTS =
  '/v3/payments/funds-movements?filter[payableId][eq]=payable_1001&filter[externalId][eq]=BILL-2600';

// A second connection changes the jobs, which an embedded database does not have.
describe.runIf(serverUrl !== undefined)('on PostgreSQL', () => {
  let database: OpenDatabase;
  let platform: Platform;
  let client: Client;
  beforeEach(async () => {
    const settings = { kind: 'postgres', url: await createDemoDatabase(serverUrl ?? '') } as const;
    platform = await startPlatform({
      host: '127.0.0.1',
      port: 0,
      logLevel: 'silent',
      database: settings,
      seed: true,
      triggers: true,
      settlementSeconds: 3600,
      sweepSeconds: 1,
    });
    client = createClient(platform.url, ACCT_1);
    database = await openDatabase(settings);
  });
  afterEach(async () => {
    await platform.close();
    await database.close();
  });

  async function open(): Promise<void> {
    const { body } = await client.send('POST', `${PAYABLE}/open`);
    await client.poll(`/v3/platform/operations/${body.id}`, ({ status }) => status === 'Completed');
  }

  const settleNow = () =>
    sql`update pgboss.job set start_after = now() where name = 'settlements' and state = 'created'`.execute(
      database.db,
    );

  const settlements = async () => {
    const { rows } = await sql<{ state: string; retry_count: number; kept: boolean }>`
      select state, retry_count, keep_until > now() + interval '100 years' as kept
      from pgboss.job where name = 'settlements' order by created_on
    `.execute(database.db);
    return rows;
  };

  test('a settlement that has failed a thousand times is tried again, and pays once nothing holds its payable', async () => {
    await open();
    await database.db.transaction().execute(async (trx) => {
      await trx.selectFrom('resources').select('id').where('id', '=', 'payable_1001').forUpdate().execute();
      await sql`
        update pgboss.job set retry_count = 1000, start_after = now() where name = 'settlements'
      `.execute(database.db);
      await expect.poll(settlements).toEqual([{ state: 'retry', retry_count: 1000, kept: true }]);
    });
    await client.poll(PAYABLE, ({ status }) => status === 'Paid');
  });

  test('a movement of funds ends although a triggered event was faster than its settlement', async () => {
    const statuses = async () => (await client.walk(MOVEMENTS)).map(({ status }) => status);
    await open();
    await trigger(client, 'Payable.PartiallyPaid', { resourceId: 'payable_1001' });
    await open();
    await trigger(client, 'Payable.Returned', { resourceId: 'payable_1001' });
    expect(await statuses()).toEqual(['Processing', 'Processing']);
    await settleNow();
    await expect.poll(statuses).toEqual(['Returned', 'Returned']);
    expect((await client.get(PAYABLE)).body.status).toBe('Returned');
  });

  test('an open payable whose settlement was given up is settled when it is opened again, and paid once', async () => {
    const { db } = database;
    await open();
    await sql`update pgboss.job set state = 'failed' where name = 'settlements'`.execute(db);
    await open();
    await settleNow();
    await client.poll(PAYABLE, ({ status }) => status === 'Paid');
    await trigger(client, 'Payable.PartiallyPaid', { resourceId: 'payable_1001' });
    await open();
    // The settlement of the first movement comes back while the second one waits.
    await sql`update pgboss.job set state = 'retry', start_after = now() where state = 'failed'`.execute(db);
    await expect
      .poll(async () => (await settlements()).map(({ state }) => state))
      .toEqual(['completed', 'completed', 'created']);
    expect((await client.get(PAYABLE)).body.status).toBe('Open');
    const events = await client.walk('/v3/platform/events?filter[type][eq]=FundsMovement.Completed');
    expect(events.length).toBe(1);
  });
});

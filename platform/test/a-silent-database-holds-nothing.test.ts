import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { sql } from 'kysely';
import { afterEach, beforeEach, describe, expect, inject, test } from 'vitest';
import { openDatabase } from '../src/database/connect.ts';
import { DatabaseUnavailable } from '../src/database/unavailable.ts';
import { type Platform, startPlatform } from '../src/server.ts';
import { ACCT_1, createClient } from './fixtures/client.ts';
import { type DatabaseProxy, startDatabaseProxy } from './fixtures/database-proxy.ts';
import { createDatabase } from './fixtures/postgres.ts';

const serverUrl = inject('postgresUrl');

test('a server that accepts connections and never answers is reported as a database that cannot be opened', async () => {
  const server = createServer(() => {}).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `postgres://postgres@127.0.0.1:${(server.address() as AddressInfo).port}/weir`;
  await expect(openDatabase({ kind: 'postgres', url, timeoutMs: 100 })).rejects.toThrow(DatabaseUnavailable);
  server.close();
});

describe.runIf(serverUrl !== undefined)('a PostgreSQL that falls silent', () => {
  let url: string;
  let proxy: DatabaseProxy;
  let platform: Platform | undefined;
  beforeEach(async () => {
    url = await createDatabase(serverUrl ?? '');
    proxy = await startDatabaseProxy(url);
  });
  afterEach(async () => {
    await platform?.close();
    platform = undefined;
    await proxy.close();
  });

  const start = (timeoutMs: number) =>
    startPlatform({
      host: '127.0.0.1',
      port: 0,
      logLevel: 'silent',
      seed: true,
      database: { kind: 'postgres', url: proxy.url, timeoutMs },
    });

  test('takes its connections with it, and requests and writes go on with new ones', async () => {
    platform = await start(6000);
    const client = createClient(platform.url, ACCT_1);
    // All connections of the pool are open.
    const first = await Promise.all(Array.from({ length: 20 }, () => client.get('/v3/payments/payees')));
    expect(new Set(first.map(({ status }) => status))).toEqual(new Set([200]));
    proxy.silence(false);
    const lost = await Promise.all(
      Array.from({ length: 10 }, () => client.send('POST', '/v3/platform/sessions')),
    );
    expect(lost.map(({ status }) => status)).toContain(503);
    const later = await Promise.all(
      Array.from({ length: 10 }, () => client.send('POST', '/v3/platform/sessions')),
    );
    expect(new Set(later.map(({ status }) => status))).toEqual(new Set([201]));
  });

  test('does not hold the stop of a platform whose statements may take an hour', async () => {
    platform = await start(3600_000);
    proxy.silence(true);
    const lost = createClient(platform.url, ACCT_1).send('POST', '/v3/platform/sessions');
    // The request, the relay, the deliveries and two queues of jobs.
    await expect.poll(() => proxy.asking).toBeGreaterThanOrEqual(5);
    await Promise.all([expect(lost).rejects.toThrow(), platform.close()]);
    platform = undefined;
  });
});

describe.runIf(serverUrl !== undefined)('a statement that waits too long for a lock', () => {
  test('ends in PostgreSQL too, and its connection is not used again', async () => {
    const url = await createDatabase(serverUrl ?? '');
    const [holder, waiter] = await Promise.all([
      openDatabase({ kind: 'postgres', url }),
      openDatabase({ kind: 'postgres', url, timeoutMs: 2000 }),
    ]);
    const pidOf = (database: typeof waiter) =>
      sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(database.db);
    const waiting = sql<{ count: number }>`
      select count(*)::int as count from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock'
    `;
    const before = await pidOf(waiter);
    await holder.db.transaction().execute(async (trx) => {
      await sql`lock table secrets in access exclusive mode`.execute(trx);
      await expect(waiter.db.selectFrom('secrets').selectAll().execute()).rejects.toThrow('timeout');
      expect(await pidOf(waiter)).not.toEqual(before);
      await expect.poll(async () => (await waiting.execute(holder.db)).rows[0]?.count).toBe(0);
    });
    await Promise.all([holder.close(), waiter.close()]);
  });
});

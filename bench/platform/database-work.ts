/**
 * Rows and WAL of PostgreSQL for each delivered event, apart from the write that the event reports: from the event's row to
 * the log of its delivery. Counts do not depend on how busy the machine is. Full-page images are off, because their number
 * depends on the distance of checkpoints. `npx tsx bench/platform/database-work.ts`
 */
import { spawnSync } from 'node:child_process';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { openDatabase } from '../../platform/src/database/connect.ts';
import { writeOccurrence } from '../../platform/src/events/outbox.ts';
import { startPlatform } from '../../platform/src/server.ts';
import { ACCT_1, createClient } from '../../platform/test/fixtures/client.ts';
import { createDatabase, findPostgres, startPostgres } from '../../platform/test/fixtures/postgres.ts';

const EVENTS = 2000;
const IDLE_MS = 5000;
/** An idle connection reports its counts after ten seconds. */
const REPORTED_MS = 12_000;

const binaries = findPostgres();
if (binaries === undefined) throw new Error('PostgreSQL is not installed.');
const server = await startPostgres(binaries);
const url = await createDatabase(server.url);
const { db, executor, close } = await openDatabase({ kind: 'postgres', url });
await executor.executeSql('alter system set full_page_writes = off');
await executor.executeSql('select pg_reload_conf()');

let arrived = 0;
const receiver = createServer((request, response) => {
  request.resume().on('end', () => {
    response.writeHead(204).end();
    arrived++;
  });
});
await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
const platform = await startPlatform({
  ...{ host: '127.0.0.1', port: 0, database: { kind: 'postgres', url } as const, seed: true, triggers: true },
  deliveries: { allowPrivate: true },
});
const body = {
  url: `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`,
  subscribedEvents: ['Transfer.Created'],
};
await createClient(platform.url, ACCT_1).send('POST', '/v3/platform/webhook-subscriptions', body);

const idle = await measure(() => setTimeout(IDLE_MS));
const startedMs = performance.now();
const busy = await measure(async () => {
  for (let i = 0; i < EVENTS; i++) {
    await db.transaction().execute((trx) =>
      writeOccurrence(trx, {
        type: 'Transfer.Created',
        at: new Date(),
        data: { id: `transfer_${i}`, status: 'Created', externalId: `erp-${i}` },
        recipients: [{ scope: 'Account', id: 'acct_1' }],
      }),
    );
  }
  while (arrived < EVENTS) await setTimeout(20);
  await setTimeout(1000);
});
const idleShare = (performance.now() - startedMs - REPORTED_MS) / IDLE_MS;
const { rows } = await executor.executeSql('select version()');
console.log(rows[0]?.version);
console.log(`${EVENTS} events, each written in a transaction of its own and delivered once; per event:`);
console.log(
  `WAL bytes ${perEvent(busy.bytes - idle.bytes * idleShare)}, records ${perEvent(busy.records - idle.records * idleShare)}`,
);
console.log('| table | inserted | updated | of these HOT | deleted |');
console.log('|---|--:|--:|--:|--:|');
for (const [table, counts] of Object.entries(busy.tables)) {
  const cells = counts.map((count) => (count / EVENTS).toFixed(2));
  if (cells.some((cell) => cell !== '0.00')) console.log(`| ${table} | ${cells.join(' | ')} |`);
}
console.log(await walByRecord(busy.from, busy.to));
receiver.closeAllConnections();
receiver.close();
await close();
await platform.close();
await server.stop();

/** What the WAL between two places consists of, by pg_waldump. */
async function walByRecord(from: string, to: string): Promise<string> {
  const directory = (await executor.executeSql('show data_directory')).rows[0]?.data_directory;
  const args = ['--stats=record', '--path', `${directory}/pg_wal`, '--start', from, '--end', to];
  const { stdout } = spawnSync(join(binaries ?? '', 'pg_waldump'), args, { encoding: 'utf8' });
  const rows = stdout.split('\n').flatMap((line) => {
    const [, type, count, bytes] = /^(\S+)\s+(\d+) \(.*?\)\s+(\d+) \(/.exec(line) ?? [];
    return Number(count) > EVENTS / 10
      ? [`| ${type} | ${perEvent(Number(count))} | ${perEvent(Number(bytes))} |`]
      : [];
  });
  return ['| WAL record | per event | bytes per event |', '|---|--:|--:|', ...rows].join('\n');
}

interface Work {
  readonly from: string;
  readonly to: string;
  readonly bytes: number;
  readonly records: number;
  /** Inserted, updated, HOT-updated and deleted rows. */
  readonly tables: Readonly<Record<string, readonly number[]>>;
}

async function measure(work: () => Promise<unknown>): Promise<Work> {
  const before = await read();
  await work();
  const { bytes, to } = await read();
  await setTimeout(REPORTED_MS);
  const { records, tables } = await read();
  const growth = Object.entries(tables).map(([table, counts]) => [
    table,
    counts.map((count, index) => count - (before.tables[table]?.[index] ?? 0)),
  ]);
  return {
    from: before.to,
    to,
    bytes: bytes - before.bytes,
    records: records - before.records,
    tables: Object.fromEntries(growth),
  };
}

async function read(): Promise<Work> {
  await executor.executeSql('select pg_stat_force_next_flush(), pg_stat_clear_snapshot()');
  const wal = await executor.executeSql(
    "select pg_current_wal_lsn()::text as to, pg_current_wal_lsn() - '0/0'::pg_lsn as bytes, (select wal_records from pg_stat_wal) as records",
  );
  const counts = await executor.executeSql(
    'select relname, n_tup_ins, n_tup_upd, n_tup_hot_upd, n_tup_del from pg_stat_user_tables where schemaname = $1 order by relname',
    ['public'],
  );
  return {
    from: '',
    to: String(wal.rows[0]?.to),
    bytes: Number(wal.rows[0]?.bytes),
    records: Number(wal.rows[0]?.records),
    tables: Object.fromEntries(
      counts.rows.map((row) => [
        row.relname,
        [row.n_tup_ins, row.n_tup_upd, row.n_tup_hot_upd, row.n_tup_del].map(Number),
      ]),
    ),
  };
}

function perEvent(count: number): string {
  return (count / EVENTS).toFixed(count > 100 * EVENTS ? 0 : 1);
}

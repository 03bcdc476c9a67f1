import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { openDatabase } from '../../platform/src/database/connect.ts';
import { writeOccurrence } from '../../platform/src/events/outbox.ts';
import { startPlatform } from '../../platform/src/server.ts';
import { ACCT_1, createClient } from '../../platform/test/fixtures/client.ts';
import { createDatabase, findPostgres, startPostgres } from '../../platform/test/fixtures/postgres.ts';
import type { Bench } from '../lab/bench.ts';
import { startReceiver } from '../load/receiver.ts';
import { table } from '../report/section.ts';

const EVENTS = 2000;
const IDLE_MS = 5000;
/** An idle connection reports its counts after ten seconds. */
const REPORTED_MS = 12_000;

/**
 * Measures from the row of an event to the log of its delivery, without the write that the event reports. Counts do not depend on how busy
 * the machine is. Full-page images are off, because their number depends on the distance of checkpoints.
 */
export async function measureDatabaseWork(bench: Bench): Promise<readonly string[]> {
  const binaries = findPostgres();
  if (binaries === undefined) throw new Error('PostgreSQL is not installed.');
  const server = bench.endWith(await startPostgres(binaries));
  const url = await createDatabase(server.url);
  const { db, executor, close } = await openDatabase({ kind: 'postgres', url });
  bench.endWith({ stop: close });
  const ask = async (sql: string, parameters?: readonly unknown[]) =>
    (await executor.executeSql(sql, parameters === undefined ? undefined : [...parameters])).rows;
  await ask('alter system set full_page_writes = off');
  await ask('select pg_reload_conf()');
  const receiver = bench.endWith(await startReceiver());
  const platform = await startPlatform({
    host: '127.0.0.1',
    port: 0,
    database: { kind: 'postgres', url } as const,
    seed: true,
    triggers: true,
    deliveries: { allowPrivate: true },
  });
  bench.endWith({ stop: () => platform.close() });
  const body = { url: receiver.url, subscribedEvents: ['Transfer.Created'] };
  await createClient(platform.url, ACCT_1).send('POST', '/v3/platform/webhook-subscriptions', body);

  const idle = await measure(ask, () => setTimeout(IDLE_MS));
  const startedMs = performance.now();
  const busy = await measure(ask, async () => {
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
    await receiver.received(EVENTS);
    await setTimeout(1000);
  });
  const idleShare = (performance.now() - startedMs - REPORTED_MS) / IDLE_MS;
  const [{ version } = {}] = await ask('select version()');
  const [{ data_directory: directory } = {}] = await ask('show data_directory');
  const wal = { ...busy, path: `${directory}/pg_wal` };
  const perEventOf = (figure: 'bytes' | 'records') => perEvent(busy[figure] - idle[figure] * idleShare);
  const rows = Object.entries(busy.tables).map(([name, counts]) => [
    name,
    ...counts.map((count) => (count / EVENTS).toFixed(2)),
  ]);
  return [
    `${version}. ${EVENTS} events, each written in a transaction of its own and delivered once; per event:`,
    `WAL bytes ${perEventOf('bytes')}, records ${perEventOf('records')}`,
    '',
    ...table(
      ['table', 'inserted:', 'updated:', 'of these HOT:', 'deleted:'],
      rows.filter(([, ...cells]) => cells.some((cell) => cell !== '0.00')),
    ),
    '',
    ...table(['WAL record', 'per event:', 'bytes per event:'], walRecords(join(binaries, 'pg_waldump'), wal)),
  ];
}

/** What the WAL between two places consists of, by pg_waldump. */
function walRecords(
  program: string,
  { path, from, to }: Pick<Work, 'from' | 'to'> & { path: string },
): string[][] {
  const args = ['--stats=record', '--path', path, '--start', from, '--end', to];
  const { stdout, error } = spawnSync(program, args, { encoding: 'utf8' });
  if (error !== undefined) throw error;
  return stdout.split('\n').flatMap((line) => {
    const [, type = '', count, bytes] = /^(\S+)\s+(\d+) \(.*?\)\s+(\d+) \(/.exec(line) ?? [];
    return Number(count) > EVENTS / 10 ? [[type, perEvent(Number(count)), perEvent(Number(bytes))]] : [];
  });
}

type Ask = (sql: string, parameters?: readonly unknown[]) => Promise<readonly Record<string, unknown>[]>;

interface Work {
  readonly from: string;
  readonly to: string;
  readonly bytes: number;
  readonly records: number;
  /** Inserted, updated, HOT-updated and deleted rows. */
  readonly tables: Readonly<Record<string, readonly number[]>>;
}

async function measure(ask: Ask, work: () => Promise<unknown>): Promise<Work> {
  const before = await read(ask);
  await work();
  const { bytes, to } = await read(ask);
  await setTimeout(REPORTED_MS);
  const { records, tables } = await read(ask);
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

async function read(ask: Ask): Promise<Work> {
  await ask('select pg_stat_force_next_flush(), pg_stat_clear_snapshot()');
  const wal = await ask(
    "select pg_current_wal_lsn()::text as to, pg_current_wal_lsn() - '0/0'::pg_lsn as bytes, (select wal_records from pg_stat_wal) as records",
  );
  const counts = await ask(
    'select relname, n_tup_ins, n_tup_upd, n_tup_hot_upd, n_tup_del from pg_stat_user_tables where schemaname = $1 order by relname',
    ['public'],
  );
  return {
    from: '',
    to: String(wal[0]?.to),
    bytes: Number(wal[0]?.bytes),
    records: Number(wal[0]?.records),
    tables: Object.fromEntries(
      counts.map((row) => [
        String(row.relname),
        [row.n_tup_ins, row.n_tup_upd, row.n_tup_hot_upd, row.n_tup_del].map(Number),
      ]),
    ),
  };
}

function perEvent(count: number): string {
  return (count / EVENTS).toFixed(count > 100 * EVENTS ? 0 : 1);
}

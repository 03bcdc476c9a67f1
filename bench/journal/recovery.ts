import { setTimeout as pause } from 'node:timers/promises';
import { Redis } from 'ioredis';
import pg from 'pg';
import { createDatabase, findPostgres, startPostgres } from '../../platform/test/fixtures/postgres.ts';
import { openJournal } from '../../src/store/journal/open-journal.ts';
import { bucketKey } from '../../src/store/keys.ts';
import { openStore } from '../../src/store/open-store.ts';
import type { Charge, Store } from '../../src/store/store.ts';
import { startRedisServer } from '../../test/fixtures/redis-server.ts';
import type { Bench } from '../lab/bench.ts';
import { table } from '../report/section.ts';

const [FLEET, NAME, DAY_SECONDS] = ['weir', 'account-day', 86_400];
const [POINTS, ROOM] = [7, 5];
/** A part of a day, as the journal joins its minutes. */
const PART_SECONDS = 840;
const SAMPLE = 2_000;
const ASKERS = 200;
const OWNERS = { quick: 10_000, full: 1_000_000 };

/** Empties a Redis whose counts are in the journal, and measures when they count again, and whether they are right. */
export async function measureRecovery({ isQuick }: Pick<Bench, 'isQuick'>): Promise<readonly string[]> {
  const owners = isQuick ? OWNERS.quick : OWNERS.full;
  const binaries = findPostgres();
  if (binaries === undefined) return ['PostgreSQL is not installed.'];
  const postgres = await startPostgres(binaries);
  const server = await startRedisServer();
  const redis = new Redis(server.port);
  try {
    const url = await createDatabase(postgres.url);
    const settings = { kind: 'redis', url: server.url, deadlineMs: 5_000 } as const;
    const failures: string[] = [];
    let seconds = 0;
    const journal = openJournal(
      { url, flushMs: 1_000, fleet: FLEET, store: settings },
      {
        journalWritten() {},
        journalFailed: ({ message }) => void failures.push(message),
        journalUntidy: ({ message }) => void failures.push(message),
        journalDropped: (points) => void failures.push(`${points} dropped`),
        recovered: (_, took) => {
          seconds = took;
        },
        recoveryFailed: ({ message }) => void failures.push(message),
        countsGoOn() {},
        countsComplete() {},
      },
    );
    const store = journal.recording(openStore(settings, undefined, journal.marks));
    await untilCounting(store, 0);
    await fill(url, owners);
    await redis.flushall();
    const lostMs = performance.now();
    const sinceLoss = () => (performance.now() - lostMs) / 1_000;
    seconds = 0;
    const waits = await Promise.all(
      askersOf(owners).map((owner) => untilCounting(store, owner).then(sinceLoss)),
    );
    while (seconds === 0) await pause(10);
    const waitedSeconds = sinceLoss();
    const { forgotten, twice } = await compare(store, owners);
    await store.close();
    return table(
      [
        'owners:',
        `longest wait of ${ASKERS} owners who asked all the time, in seconds:`,
        'seconds until all owners counted:',
        'of them reading and putting back:',
        'points forgotten, and so over the limit:',
        'points that counted twice:',
        'failed attempts:',
      ],
      [
        [
          owners.toLocaleString('en'),
          Math.max(...waits).toFixed(1),
          waitedSeconds.toFixed(1),
          seconds.toFixed(1),
          `${forgotten}`,
          `${twice}`,
          `${failures.length}`,
        ],
      ],
    );
  } finally {
    redis.disconnect();
    await Promise.all([server.stop(), postgres.stop()]);
  }
}

function chargeOf(owner: number): Charge {
  const id = `acct_${owner}`;
  const key = bucketKey(FLEET, id, NAME, id);
  const record = { scope: 'account' as const, owner: id, name: NAME, key, windowSeconds: DAY_SECONDS };
  return { buckets: [{ key, limit: POINTS + ROOM, windowSeconds: DAY_SECONDS, record }], cost: 1 };
}

/** Charges an owner until Redis decides. */
async function untilCounting(store: Store, owner: number): Promise<void> {
  while ((await store.charge(chargeOf(owner))).outcome === 'uncounted') await pause(10);
}

/** The sums of some minutes ago, of owners from 2 on: the first two were charged. */
async function fill(url: string, owners: number): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const [before, after] = chargeOf(9).buckets[0]?.key.split('acct_9') ?? [];
  await client.query(
    `insert into weir_journal_counts (fleet, key, start, until, window_seconds, last_at, points)
     select $1, $2 || 'acct_' || n || $3 || 'acct_' || n, start, start + $7::bigint + $4::bigint, $4, start + 60, $5
     from (select (extract(epoch from now())::bigint / $7::bigint - 1) * $7::bigint as start) as part, generate_series(2, $6::int) as n
     order by random()`,
    [FLEET, before, after, DAY_SECONDS, POINTS, owners + 1, PART_SECONDS],
  );
  await client.end();
}

/** Others than the owners of the sample. */
function askersOf(owners: number): number[] {
  return Array.from({ length: ASKERS }, (_, index) => 3 + index * Math.floor(owners / ASKERS));
}

/** Uses the room of some owners up. Those who asked have used a point of it. */
async function compare(store: Store, owners: number): Promise<{ forgotten: number; twice: number }> {
  let [forgotten, twice] = [0, 0];
  const step = Math.max(1, Math.floor(owners / SAMPLE));
  const sample = Array.from({ length: Math.floor(owners / step) }, (_, index) => 2 + index * step);
  const askers = new Set(askersOf(owners));
  for (const owner of [...sample, ...askers]) {
    let admitted = askers.has(owner) ? 1 : 0;
    while ((await store.charge(chargeOf(owner))).outcome === 'admitted') admitted += 1;
    forgotten += Math.max(0, admitted - ROOM);
    twice += Math.max(0, ROOM - admitted);
  }
  return { forgotten, twice };
}

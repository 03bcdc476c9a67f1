import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { describe, expect, inject, onTestFinished, test } from 'vitest';
import { createDatabase, findPostgres, startPostgres } from '../../../platform/test/fixtures/postgres.ts';
import { sharedRedisUrl, uniquePrefix } from '../../fixtures/redis-url.ts';
import { Fleet, OWNERS } from './fleet.ts';

const postgresUrl = inject('postgresUrl');

/** No bucket is ever full. */
const LIMIT = 1_000_000;

/** The points of each bucket in the journal. */
async function pointsIn(url: string): Promise<ReadonlyMap<string, number>> {
  const client = await connected(url);
  const { rows } = await client.query(
    'select key, sum(points)::int as points from weir_journal_counts group by key',
  );
  await client.end();
  return new Map(rows.map(({ key, points }) => [key, points]));
}

async function connected(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  return client;
}

/** Each returns how it ends. */
const TROUBLES: readonly [string, RegExp | undefined, (url: string) => Promise<() => Promise<unknown>>][] = [
  [
    'slow: no write ends',
    undefined,
    async (url) => {
      const client = await connected(url);
      await client.query('begin');
      await client.query('lock table weir_journal in exclusive mode');
      return () => client.query('commit').then(() => client.end());
    },
  ],
  [
    'full',
    /no space left/,
    async (url) => {
      const client = await connected(url);
      await client.query(`create function full_disk() returns trigger language plpgsql as
        $$ begin raise exception 'no space left on device' using errcode = 'disk_full'; end $$`);
      await client.query(
        'create trigger full_disk before insert on weir_journal for each statement execute function full_disk()',
      );
      return () => client.query('drop trigger full_disk on weir_journal').then(() => client.end());
    },
  ],
  [
    'restarted',
    /connect/,
    async (url) => {
      const name = new URL(url).pathname.slice(1);
      const client = await connected(postgresUrl ?? '');
      await client.query(`alter database ${name} with allow_connections false`);
      await client.query('select pg_terminate_backend(pid) from pg_stat_activity where datname = $1', [name]);
      return () =>
        client.query(`alter database ${name} with allow_connections true`).then(() => client.end());
    },
  ],
];

describe.skipIf(postgresUrl === undefined)('while PostgreSQL is', () => {
  test.each(TROUBLES)(
    '%s, charges are counted, and each is written once afterwards',
    async (_, problem, begin) => {
      const url = await createDatabase(postgresUrl ?? '');
      const fleet = new Fleet(uniquePrefix(), LIMIT);
      const settings = { kind: 'redis', url: sharedRedisUrl(), deadlineMs: 5_000 } as const;
      const store = fleet.start(settings, url);
      onTestFinished(() => fleet.close());
      await fleet.counting(store);
      const journal = fleet.replicas[0]?.journal;
      await expect.poll(() => journal?.lagSeconds()).toBe(0);

      fleet.outcomes.clear();
      const end = await begin(url);
      fleet.load(store);
      if (problem !== undefined) await expect.poll(() => fleet.failures.join()).toMatch(problem);
      await expect.poll(() => journal?.lagSeconds()).toBeGreaterThan(0.5);
      const before = fleet.admittedTo(0);
      // No charge waits for the write, which has not ended.
      await expect.poll(() => fleet.admittedTo(0)).toBeGreaterThan(before + 20);
      expect(journal?.lagSeconds()).toBeGreaterThan(0.5);
      expect([...fleet.outcomes.keys()]).toEqual(['admitted']);
      await end();

      await pause(100);
      await fleet.endLoad();
      const failures = fleet.failures.length;
      await expect.poll(() => journal?.lagSeconds()).toBe(0);
      expect(fleet.failures.slice(failures).filter((message) => message.includes('dropped'))).toEqual([]);
      const points = await pointsIn(url);
      expect(points.size).toBe(2 * OWNERS);
      expect(points).toEqual(fleet.admitted);
    },
  );

  test('killed and started again, and again, under charges: each is written once', async () => {
    const postgres = await startPostgres(findPostgres() ?? '');
    onTestFinished(() => postgres.stop());
    const url = await createDatabase(postgres.url);
    const fleet = new Fleet(uniquePrefix(), LIMIT);
    const settings = { kind: 'redis', url: sharedRedisUrl(), deadlineMs: 5_000 } as const;
    onTestFinished(() => fleet.close());
    for (let replica = 1; replica <= 2; replica++) {
      // Of two that start together, the second may have everything put back again.
      const store = fleet.start(settings, url);
      await fleet.counting(store);
      fleet.load(store);
    }
    fleet.outcomes.clear();
    for (let round = 1; round <= 2; round++) {
      const written = async () =>
        [...(await pointsIn(url)).values()].reduce((sum, points) => sum + points, 0);
      await expect.poll(written).toBeGreaterThan(0);
      fleet.failures.length = 0;
      await postgres.kill();
      const before = fleet.admittedTo(0);
      await expect.poll(() => fleet.failures.length).toBeGreaterThan(0);
      await expect.poll(() => fleet.admittedTo(0)).toBeGreaterThan(before + 20);
      await postgres.restart();
      await expect
        .poll(() => fleet.replicas.map(({ journal }) => journal.lagSeconds() < 2))
        .toEqual([true, true]);
    }
    await fleet.endLoad();
    for (const { journal } of fleet.replicas) await expect.poll(() => journal.lagSeconds()).toBe(0);
    expect(fleet.failures.filter((message) => message.includes('dropped'))).toEqual([]);
    expect([...fleet.outcomes.keys()]).toEqual(['admitted']);
    expect(await pointsIn(url)).toEqual(fleet.admitted);
  });
});

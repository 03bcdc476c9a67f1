import { Redis } from 'ioredis';
import pg from 'pg';
import { describe, expect, inject, onTestFinished, test } from 'vitest';
import { createDatabase } from '../../../platform/test/fixtures/postgres.ts';
import { startRedisServer } from '../../fixtures/redis-server.ts';
import { uniquePrefix } from '../../fixtures/redis-url.ts';
import { Fleet } from './fleet.ts';

const postgresUrl = inject('postgresUrl');

/** A replica of its own Redis and database that has admitted a charge. */
async function charged(cost: number) {
  const server = await startRedisServer();
  onTestFinished(() => server.stop());
  const redis = new Redis(server.port);
  onTestFinished(() => redis.disconnect());
  const url = await createDatabase(postgresUrl ?? '');
  const fleet = new Fleet(uniquePrefix(), 100);
  const store = fleet.start({ kind: 'redis', url: server.url, deadlineMs: 5_000 }, url);
  onTestFinished(() => fleet.close());
  await fleet.counting(store);
  const charge = { buckets: fleet.bucketsOf(1), cost, operation: 'listPayees' };
  const decision = await store.charge(charge);
  if (decision.outcome !== 'admitted') throw new Error(decision.outcome);
  return { redis, url, fleet, store, charge, decision };
}

describe.skipIf(postgresUrl === undefined)('a settlement', () => {
  test('of a replica that does not know of the loss changes nothing before the counts are back', async () => {
    const { redis, url, store, charge, decision } = await charged(5);

    // No recovery gets further than its question.
    const database = new pg.Client({ connectionString: url });
    await database.connect();
    onTestFinished(() => database.end());
    await database.query('begin; lock table weir_journal_recovery in access exclusive mode');
    await redis.flushall();
    const more = { charge, chargedAtUs: decision.chargedAtUs, id: 'more', cost: 25, refundsRequests: false };
    const settled = Promise.resolve(store.settle(more));
    // It is refused by the mark, and then taken by a recovery.
    await expect.poll(() => redis.keys('*:journal')).toHaveLength(1);
    expect(await redis.keys('*:acct_1')).toEqual([]);
    await database.query('commit');
    expect(await settled).toMatchObject({ outcome: 'settled' });
    const { buckets } = (await store.peek({ ...charge, cost: 1 })) as typeof decision;
    expect(buckets.map(({ remaining }) => remaining)).toEqual([75, 75]);
  });

  test('of a large charge gives back to a window what was put back as of another time', async () => {
    const { redis, fleet, store, charge, decision } = await charged(60);
    await redis.flushall();
    await fleet.counting(store);
    const less = { charge, chargedAtUs: decision.chargedAtUs, id: 'less', cost: 5, refundsRequests: false };
    expect(await store.settle(less)).toMatchObject({ outcome: 'settled' });
    const { buckets } = (await store.peek({ ...charge, cost: 1 })) as typeof decision;
    expect(buckets.map(({ remaining }) => remaining)).toEqual([95, 95]);
  });
});

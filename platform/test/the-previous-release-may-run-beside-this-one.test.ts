import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type OpenDatabase, openDatabase } from '../src/database/connect.ts';
import { logAttempts } from '../src/deliveries/attempts.ts';
import { queueEvents } from '../src/deliveries/fan-out.ts';
import {
  type ClaimedDelivery,
  claimDeliveries,
  findWaiting,
  hastenDeliveries,
} from '../src/deliveries/queue.ts';
import { settleOptions } from '../src/settings.ts';
import { databases, type OpenTestDatabase } from './fixtures/databases.ts';
import { RELEASED_QUEUES } from './fixtures/releases/queues.ts';
import { insertSubscription } from './fixtures/subscription.ts';

const SUBSCRIPTION = 'sub_1';
const { deliveries: SETTINGS } = settleOptions({ host: '', port: 0 });
const later = (seconds: number) => new Date(Date.now() + seconds * 1000);

const cases = Object.entries(RELEASED_QUEUES).flatMap(([version, released]) =>
  databases.map((database) => ({ version, released, database })),
);

describe.each(cases)('beside $version on $database.name', ({ released, database: { open } }) => {
  let files: OpenTestDatabase;
  let database: OpenDatabase;
  beforeEach(async () => {
    files = await open();
    database = await openDatabase(files.settings);
    await insertSubscription(database.db, SUBSCRIPTION, 'http://127.0.0.1:9/');
  });
  afterEach(async () => {
    await database.close();
    await files.close();
  });

  /** Queues a delivery of so many events. */
  async function queue(count: number): Promise<void> {
    const { db } = database;
    const events = Array.from({ length: count }, (_, i) => ({
      id: `evt_${i}`,
      type: 'Transfer.Created',
      scope_type: 'Account',
      scope_id: 'acct_1',
      resource_id: `transfer_${i}`,
      payload: '{}',
      occurrence_id: null,
      occurred_at: new Date(),
      relayed_at: new Date(),
    }));
    await db.insertInto('events').values(events).execute();
    await queueEvents(db, events, later(-1));
  }

  const slots = (count: number) => new Map([[SUBSCRIPTION, count]]);
  const claim = (count: number, lease = 30) =>
    claimDeliveries(database.db, slots(count), new Date(), later(lease));
  const claimBefore = (count: number, now = new Date()) =>
    released.claim(database.db, slots(count), now, later(30));
  const fail = (delivery: ClaimedDelivery) => {
    const outcome = {
      isDelivered: false,
      durationMs: 1,
      responseStatus: 500,
      responseBody: null,
      error: 'answered 500',
    };
    return logAttempts(database.db, SETTINGS, [{ delivery, attemptedAt: new Date(), outcome }], new Date());
  };

  test('the release does not send what this version is sending, until its lease has ended', async () => {
    await queue(2);
    expect((await claim(1)).length).toBe(1);
    expect((await claim(1, -1)).length).toBe(1);
    expect((await claimBefore(2)).length).toBe(1);
    expect(await claimBefore(2)).toEqual([]);
  });

  test('this version does not send what the release is sending, even if the subscription is resumed meanwhile', async () => {
    await queue(1);
    expect((await claimBefore(1)).length).toBe(1);
    await hastenDeliveries(database.db, SUBSCRIPTION, new Date());
    expect(await findWaiting(database.db, new Date())).toEqual([]);
    expect(await claim(1)).toEqual([]);
  });

  test('each sends again what failed at the other', async () => {
    await queue(1);
    const [first] = await claim(1);
    if (first) await fail(first);
    const [again = ''] = await claimBefore(1, later(60));
    await released.retry(database.db, again, later(-1));
    const [third] = await claim(1);
    expect([first?.deliveryId, again]).toEqual([third?.deliveryId, third?.deliveryId]);
    expect(third?.failures).toBe(2);
  });

  test('a delivery that the release left behind and that failed here is hastened like any other', async () => {
    await queue(1);
    const [left = ''] = await claimBefore(1);
    // The end of its lease, after a crash.
    await database.db
      .updateTable('delivery_queue')
      .set({ [released.leaseEnd]: later(-1) })
      .execute();
    const [claimed] = await claim(1);
    if (claimed) await fail(claimed);
    expect(await claim(1)).toEqual([]);
    await hastenDeliveries(database.db, SUBSCRIPTION, new Date());
    expect((await claim(1)).map(({ deliveryId }) => deliveryId)).toEqual([left]);
  });

  test('when both claim at once, each delivery is claimed by one of them', async () => {
    await queue(200);
    const claims = Array.from({ length: 100 }, async (_, i) =>
      i % 2 === 0 ? claimBefore(4) : (await claim(4)).map(({ deliveryId }) => deliveryId),
    );
    const claimed = (await Promise.all(claims)).flat();
    // Rows that are locked or leased by the other are skipped, so some are left for later.
    for (;;) {
      const rest = await claim(200);
      if (rest.length === 0) break;
      claimed.push(...rest.map(({ deliveryId }) => deliveryId));
    }
    expect([claimed.length, new Set(claimed).size]).toEqual([200, 200]);
  });
});

import { setTimeout as pause } from 'node:timers/promises';
import { openConnection } from '../../src/store/redis/connection/redis-connection.ts';
import type { RemoteStoreSettings } from '../../src/store/redis/connection/redis-options.ts';
import type { RedisClient } from '../../src/store/redis/scripts.ts';
import { sendSettlements } from '../../src/store/redis/send-settlements.ts';
import type { Charge, Decision } from '../../src/store/store.ts';
import { isValidCharge, isValidSettlement } from '../../src/store/store.ts';
import { silentObserver } from '../../src/store/store-observer.ts';
import { runCharges, TEST_LIFE_MS } from '../fixtures/run-charges.ts';
import type { ClockedStore } from './conformance.ts';

const INVALID: Decision = { outcome: 'uncounted', reason: 'invalid' };

/** The scripts in a Redis of any topology, told their time by the test instead of by Redis. */
export async function openClockedRedis(
  settings: RemoteStoreSettings,
): Promise<{ store: ClockedStore; close(): void }> {
  const events = { ready() {}, lost() {} };
  const { client, close } = openConnection(settings, silentObserver, events);
  const decide = async (charge: Charge, isSpending: boolean, nowUs: number): Promise<Decision> => {
    if (!isValidCharge(charge)) return INVALID;
    const [decision = INVALID] = await runCharges(client, [charge], { isSpending, nowUs });
    return decision;
  };
  await untilAnswering(client);
  const store: ClockedStore = {
    charge: (charge, nowUs) => decide(charge, true, nowUs),
    settle: async (settlement, nowUs) => {
      if (!isValidSettlement(settlement)) return { outcome: 'dropped', reason: 'invalid' };
      const options = { markedMs: TEST_LIFE_MS, nowUs, lifeMs: TEST_LIFE_MS };
      const [settled] = await sendSettlements(client, [settlement], options);
      if (settled === undefined) throw new Error('no answer');
      return settled;
    },
    peek: (charge, nowUs) => decide(charge, false, nowUs),
  };
  return { store, close };
}

async function untilAnswering(client: RedisClient): Promise<void> {
  const charge = { buckets: [{ key: 'weir-test-ready', limit: 1, windowSeconds: 1 }], cost: 1 };
  const giveUpMs = performance.now() + 20_000;
  for (;;) {
    try {
      await runCharges(client, [charge]);
      return;
    } catch (error) {
      if (performance.now() > giveUpMs) throw error;
      await pause(10);
    }
  }
}

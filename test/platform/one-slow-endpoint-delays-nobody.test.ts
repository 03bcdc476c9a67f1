import { describe, expect, test } from 'vitest';
import { ACCT_1, ACCT_3, type Client, trigger } from './fixtures/client.ts';
import { databases } from './fixtures/databases.ts';
import { usePlatform } from './fixtures/platform.ts';
import type { Receiver } from './fixtures/receiver.ts';

const CONCURRENCY = 16;

describe.each(databases)('on $name', (database) => {
  // An attempt lasts longer than the whole test: a slot that a silent endpoint holds is not free again.
  const platform = usePlatform(database, { deliveries: { timeoutMs: 300_000, concurrency: CONCURRENCY } });

  async function subscribeSilent(client: Client, type: string): Promise<Receiver> {
    const [receiver] = await platform.subscribe(client, [type]);
    receiver.answer = 0;
    return receiver;
  }

  test('while endpoints of one Account do not answer, another Account and its own other endpoint get every event', async () => {
    const slow = platform.as(ACCT_1);
    const fast = platform.as(ACCT_3);
    const types = ['Transfer.Created', 'Transfer.Failed', 'Transfer.Updated', 'Transfer.Completed'];
    const silent = await Promise.all(types.map((type) => subscribeSilent(slow, type)));
    for (const type of types) {
      await Promise.all(Array.from({ length: CONCURRENCY }, () => trigger(slow, type)));
    }
    for (const [index, receiver] of silent.entries()) await receiver.until(types[index] ?? '', 1);
    const [ofOther] = await platform.subscribe(fast, ['Mandate.*']);
    const [ofSame] = await platform.subscribe(slow, ['Mandate.*']);
    const others = await Promise.all(Array.from({ length: 20 }, () => trigger(fast, 'Mandate.Created')));
    await ofOther.untilAbout(others);
    const own = await Promise.all(Array.from({ length: 20 }, () => trigger(slow, 'Mandate.Created')));
    await ofSame.untilAbout(own);
    const held = silent.map(({ received }) => received.length);
    expect(Math.max(...held), `slots held by silent endpoints: ${held}`).toBeLessThanOrEqual(CONCURRENCY / 8);
  });
});

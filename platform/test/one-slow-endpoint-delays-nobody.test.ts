import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { MAX_SUBSCRIPTIONS } from '../src/handlers/subscriptions.ts';
import { ACCT_1, ACCT_2, ACCT_3, type Client, trigger } from './fixtures/client.ts';
import { quickest } from './fixtures/databases.ts';
import { usePlatform } from './fixtures/platform.ts';
import type { Receiver } from './fixtures/receiver.ts';

const CONCURRENCY = 64;
/** More than one endpoint may have at once. */
const EVENTS = 16;

describe.each([quickest])('on $name', (database) => {
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
      await Promise.all(Array.from({ length: EVENTS }, () => trigger(slow, type)));
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

  test('five silent endpoints hold a slot each, and a healthy one of their Account uses many at once', async () => {
    const client = platform.as(ACCT_2);
    const silent = [
      'Mandate.Created',
      'Mandate.Expired',
      'Mandate.Revoked',
      'Mandate.Activated',
      'Mandate.Consumed',
    ];
    const receivers = await Promise.all(silent.map((type) => subscribeSilent(client, type)));
    for (const type of silent) await Promise.all(Array.from({ length: 8 }, () => trigger(client, type)));
    for (const [index, receiver] of receivers.entries()) await receiver.until(silent[index] ?? '', 1);
    let atOnce = 0;
    let mostAtOnce = 0;
    let arrived = 0;
    const healthy = createServer(async (request, response) => {
      mostAtOnce = Math.max(mostAtOnce, ++atOnce);
      await setTimeout(20);
      atOnce--;
      arrived++;
      request.resume();
      response.writeHead(204).end();
    });
    await new Promise<void>((resolve) => healthy.listen(0, '127.0.0.1', resolve));
    const url = `http://127.0.0.1:${(healthy.address() as AddressInfo).port}`;
    const path = '/v3/platform/webhook-subscriptions';
    const { body } = await client.send('POST', path, { url, subscribedEvents: ['Statement.Created'] });
    await client.send('PATCH', `${path}/${body.id}`, { status: 'Paused' });
    await Promise.all(Array.from({ length: 60 }, () => trigger(client, 'Statement.Created')));
    await client.poll(`${path}/${body.id}/deliveries?page[size]=100`, ({ data }) => data.length === 60);
    await client.send('PATCH', `${path}/${body.id}`, { status: 'Active' });
    await expect.poll(() => arrived).toBe(60);
    expect(receivers.map(({ received }) => received.length)).toEqual(silent.map(() => 1));
    expect(mostAtOnce).toBeGreaterThan(1);
    healthy.closeAllConnections();
    healthy.close();
  });
});

describe.each([quickest])('a fiftieth subscription, on $name', (database) => {
  const platform = usePlatform(database);

  test('is the last one of its Account; another Account, and the Person, have their own', async () => {
    const path = '/v3/platform/webhook-subscriptions';
    const body = { url: 'https://example.com/', subscribedEvents: ['*'] };
    const create = (more: object = {}) => platform.as(ACCT_1).send('POST', path, { ...body, ...more });
    const answers = await Promise.all(Array.from({ length: MAX_SUBSCRIPTIONS + 3 }, () => create()));
    expect(answers.filter(({ status }) => status === 201).length).toBe(MAX_SUBSCRIPTIONS);
    const [refused] = answers.filter(({ status }) => status !== 201);
    expect([refused?.status, refused?.body.errors[0]?.field, refused?.body.detail]).toEqual([
      ...[422, 'scope'],
      'scope has 50 subscriptions; the Account may have 50: delete one first',
    ]);
    expect((await create({ scope: 'Person' })).status).toBe(201);
    expect((await platform.as(ACCT_3).send('POST', path, body)).status).toBe(201);
    const [made] = answers.filter(({ status }) => status === 201);
    await platform.as(ACCT_1).send('DELETE', `${path}/${made?.body.id}`);
    expect((await create()).status).toBe(201);
  });
});

import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, test } from 'vitest';
import { ACCT_1, ACCT_2, ACCT_3, type Body, trigger } from './fixtures/client.ts';
import { databases, quickest } from './fixtures/databases.ts';
import { usePlatform } from './fixtures/platform.ts';

describe.each(databases)('on $name', (database) => {
  const platform = usePlatform(database);

  test('a refused delivery is retried with the same id, and the log has each attempt', async () => {
    const client = platform.as(ACCT_1);
    const [receiver, path] = await platform.subscribe(client, ['Transfer.Created']);
    receiver.answer = 500;
    await trigger(client, 'Transfer.Created');
    await receiver.until('Transfer.Created', 1);
    receiver.answer = 200;
    const [first, second] = await receiver.until('Transfer.Created', 2);
    expect(second?.id).toBe(first?.id);
    const [delivery] = await client.walk(`${path}/deliveries`);
    const done = await client.poll(
      `${path}/deliveries/${delivery?.id}`,
      ({ status }) => status === 'Delivered',
    );
    expect(done.log.map((attempt) => attempt.responseStatus)).toEqual([200, 500]);
    expect(done.eventType).toBe('Transfer.Created');
  });

  test('a delivery whose last attempt fails is Failed, and can be sent again on request', async () => {
    const client = platform.as(ACCT_2);
    const [receiver, path] = await platform.subscribe(client, ['Transfer.Failed']);
    receiver.answer = 503;
    await trigger(client, 'Transfer.Failed');
    await receiver.until('Transfer.Failed', 2);
    const [{ id } = { id: '' }] = await client.walk(`${path}/deliveries`);
    await client.poll(`${path}/deliveries/${id}`, ({ status }) => status === 'Failed');
    receiver.answer = 200;
    expect((await client.send('POST', `${path}/deliveries/${id}/redeliver`)).status).toBe(202);
    await receiver.until('Transfer.Failed', 3);
    const done = await client.poll(`${path}/deliveries/${id}`, ({ status }) => status === 'Delivered');
    expect(done.attempts).toBe(3);
  });

  test('what happens while a subscription is paused goes out when it is resumed', async () => {
    const client = platform.as(ACCT_3);
    const [receiver, path] = await platform.subscribe(client, ['Statement.*']);
    await client.send('PATCH', path, { status: 'Paused' });
    await trigger(client, 'Statement.Created');
    const held = await client.poll(`${path}/deliveries`, ({ data }) => data[0]?.status === 'Held');
    expect(held.data.length).toBe(1);
    expect(receiver.received).toEqual([]);
    await client.send('PATCH', path, { status: 'Active' });
    await receiver.until('Statement.Created');
  });

  test('410 Gone pauses the subscription at once', async () => {
    const client = platform.as(ACCT_3);
    const [receiver, path] = await platform.subscribe(client, ['Mandate.*']);
    receiver.answer = 410;
    await trigger(client, 'Mandate.Created');
    const paused = await client.poll(path, ({ status }) => status === 'Paused');
    expect(paused.pausedReason).toBe('EndpointGone');
  });

  test('a redirect is not followed', async () => {
    const client = platform.as(ACCT_1);
    const [receiver, path] = await platform.subscribe(client, ['Role.Created']);
    let redirects = 0;
    const door = createServer((_request, response) => {
      redirects++;
      response.writeHead(307, { location: receiver.url }).end();
    });
    await new Promise<void>((resolve) => door.listen(0, '127.0.0.1', resolve));
    const url = `http://127.0.0.1:${(door.address() as AddressInfo).port}`;
    await client.send('PATCH', path, { url });
    await trigger(client, 'Role.Created');
    const { data } = await client.poll(`${path}/deliveries`, (list) => (list.data[0]?.attempts ?? 0) > 0);
    const { log } = (await client.get(`${path}/deliveries/${data[0]?.id}`)).body;
    expect(log[0]?.responseStatus).toBe(307);
    expect([redirects > 0, receiver.received.length]).toEqual([true, 0]);
    door.closeAllConnections();
    door.close();
  });

  test('an endpoint that fails is warned of on its subscription, until it answers again', async () => {
    const client = platform.as(ACCT_1);
    const [receiver, path] = await platform.subscribe(client, ['BackgroundCheck.*']);
    receiver.answer = 500;
    await trigger(client, 'BackgroundCheck.Created');
    const failing = await client.poll(path, ({ failingSince }) => failingSince !== undefined);
    expect(failing.status).toBe('Active');
    const secondsLeft = (Date.parse(failing.pausesAt ?? '') - Date.parse(failing.failingSince ?? '')) / 1000;
    expect(secondsLeft).toBe(3 * 24 * 3600);
    receiver.answer = 204;
    // The first delivery may have had its last attempt by now.
    await trigger(client, 'BackgroundCheck.Created');
    await client.poll(path, ({ failingSince }) => failingSince === undefined);
  });

  test('parallel redeliveries send one copy', async () => {
    const client = platform.as(ACCT_1);
    const [receiver, path] = await platform.subscribe(client, ['Mandate.Expired']);
    await trigger(client, 'Mandate.Expired');
    const { data } = await client.poll(`${path}/deliveries`, (list) => list.data[0]?.status === 'Delivered');
    let answer = () => {};
    receiver.ready = new Promise((resolve) => {
      answer = resolve;
    });
    const redeliver = () => client.send('POST', `${path}/deliveries/${data[0]?.id}/redeliver`);
    const answers = await Promise.all(Array.from({ length: 10 }, redeliver));
    expect(answers.map(({ status }) => status)).toEqual(Array(10).fill(202));
    answer();
    await receiver.until('Mandate.Expired', 2);
    const { attempts } = await client.poll(
      `${path}/deliveries/${data[0]?.id}`,
      (delivery) => delivery.status === 'Delivered' && delivery.attempts > 1,
    );
    expect([attempts, receiver.received.length]).toEqual([2, 2]);
  });
});

describe.each(databases)('with no tolerance for failing endpoints, on $name', (database) => {
  const platform = usePlatform(database, { deliveries: { pauseAfterSeconds: 0, probeSeconds: 0.2 } });

  test('a subscription whose endpoint failed for too long is paused, and resumes with all deliveries once it answers', async () => {
    const client = platform.as(ACCT_1);
    const [receiver, path] = await platform.subscribe(client, ['BackgroundCheck.*']);
    receiver.answer = 500;
    await trigger(client, 'BackgroundCheck.Created');
    const paused = await client.poll(path, ({ status }) => status === 'Paused');
    expect(paused.pausedReason).toBe('EndpointFailing');
    for (const part of ['Sent', 'Submitted', 'Completed']) await trigger(client, `BackgroundCheck.${part}`);
    const isHeld = ({ data }: Body) => data.length === 4 && data.every(({ status }) => status === 'Held');
    await client.poll(`${path}/deliveries`, isHeld);
    // More probes than a delivery has attempts: none of them uses up the delivery.
    await receiver.until('BackgroundCheck.Created', 4);
    expect((await client.get(`${path}/deliveries`)).body.data.map(({ status }) => status)).toEqual(
      Array(4).fill('Held'),
    );
    receiver.answer = 204;
    await client.poll(`${path}/deliveries`, ({ data }) => data.every(({ status }) => status === 'Delivered'));
    const resumed = (await client.get(path)).body;
    expect([resumed.status, resumed.pausedReason, resumed.failingSince]).toEqual([
      'Active',
      undefined,
      undefined,
    ]);
  });
});

describe('where private addresses are refused', () => {
  const platform = usePlatform(quickest, { deliveries: { allowPrivate: false } });

  test.each([
    'http://example.com/',
    'https://127.0.0.1/',
    'https://[::ffff:10.0.0.1]/',
    'https://169.254.169.254/',
    'https://localhost/',
    'ftp://example.com/',
    'https://user:word@example.com/',
    'https://',
    'https:/hooks',
    'https:443',
    'https:example.com',
    'https://exa\tmple.com/',
    ' https://example.com/',
    'https://example.com:25/',
    'https://example.com:80/',
    'https://example.com:1023/',
  ])('a subscription to %s is 422 naming the url', async (url) => {
    const body = { url, subscribedEvents: ['*'] };
    const answer = await platform.as(ACCT_1).send('POST', '/v3/platform/webhook-subscriptions', body);
    expect([answer.status, answer.body.errors[0]?.field]).toEqual([422, 'url']);
  });

  test.each(['https://example.com', 'https://example.com:443/hooks?a=b', 'https://example.com:1024/'])(
    'a subscription to %s is accepted',
    async (url) => {
      const body = { url, subscribedEvents: ['*'] };
      const answer = await platform.as(ACCT_1).send('POST', '/v3/platform/webhook-subscriptions', body);
      expect(answer.status).toBe(201);
    },
  );

  test('a name of this machine is refused at delivery', async () => {
    const client = platform.as(ACCT_1);
    // Name servers may or may not know it: refused as an address or as no name at all.
    const body = { url: 'https://ip6-localhost/', subscribedEvents: ['Role.Created'] };
    const { body: created } = await client.send('POST', '/v3/platform/webhook-subscriptions', body);
    const path = `/v3/platform/webhook-subscriptions/${created.id}`;
    await trigger(client, 'Role.Created');
    const { data } = await client.poll(`${path}/deliveries`, (list) => (list.data[0]?.attempts ?? 0) > 0);
    const { log } = (await client.get(`${path}/deliveries/${data[0]?.id}`)).body;
    expect(log[0]?.error).toMatch(/may not go to|query(A|Aaaa)/);
  });
});

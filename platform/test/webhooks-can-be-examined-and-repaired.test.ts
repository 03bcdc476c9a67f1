import { Webhook } from 'standardwebhooks';
import { describe, expect, test } from 'vitest';
import { ACCT_1, ACCT_2, ACCT_3, trigger } from './fixtures/client.ts';
import { databases } from './fixtures/databases.ts';
import { usePlatform } from './fixtures/platform.ts';

describe.each(databases)('on $name', (database) => {
  let nowMs = Date.now();
  const platform = usePlatform(database, {
    now: () => new Date(nowMs),
    deliveries: { maxAttempts: 1 },
  });

  test('a rotated secret and its successor both sign until the overlap ends, then the new one alone', async () => {
    const client = platform.as(ACCT_1);
    const [receiver, path] = await platform.subscribe(client, ['Transfer.Created']);
    const [oldSecret = ''] = receiver.secrets;
    const rotated = await client.send('POST', `${path}/rotate-secret`, { overlapSeconds: 60 });
    expect([rotated.status, rotated.body.secret === oldSecret]).toEqual([200, false]);
    expect(rotated.body.previousSecretUntil).toBe(new Date(nowMs + 60_000).toISOString());
    // A receiver that has only the old secret can still verify the delivery.
    await trigger(client, 'Transfer.Created');
    await receiver.until('Transfer.Created', 1);
    receiver.secrets.splice(0, 1, rotated.body.secret);
    await trigger(client, 'Transfer.Created');
    await receiver.until('Transfer.Created', 2);
    expect(receiver.signatures.map((text) => text.split(' ').length)).toEqual([2, 2]);
    nowMs += 61_000;
    await trigger(client, 'Transfer.Created');
    await receiver.until('Transfer.Created', 3);
    expect(receiver.signatures.at(-1)?.split(' ').length).toBe(1);
    expect(receiver.unverified).toEqual([]);
    expect(() => new Webhook(oldSecret)).not.toThrow();
  });

  test('an event is read by its id and found by type, resource and time, by its recipients alone', async () => {
    const client = platform.as(ACCT_2);
    const [receiver] = await platform.subscribe(client, ['Mandate.*']);
    const since = new Date(nowMs).toISOString();
    const id = await trigger(client, 'Mandate.Created');
    await trigger(client, 'Mandate.Revoked', { resourceId: id });
    await trigger(client, 'Mandate.Created');
    const [created] = await receiver.until('Mandate.Created', 2);
    await receiver.until('Mandate.Revoked');
    expect((await client.get(`/v3/platform/events/${created?.id}`)).body).toEqual(created);
    expect((await platform.as(ACCT_3).get(`/v3/platform/events/${created?.id}`)).status).toBe(404);
    const types = async (query: string) =>
      (await client.walk(`/v3/platform/events?page[size]=1&${query}`)).map(({ type }) => type);
    expect(await types(`filter[resourceId][eq]=${id}`)).toEqual(['Mandate.Created', 'Mandate.Revoked']);
    expect(await types('filter[type][eq]=Mandate.Created')).toEqual(['Mandate.Created', 'Mandate.Created']);
    expect(await types(`filter[resourceId][eq]=${id}&filter[timestamp][lt]=${since}`)).toEqual([]);
    expect((await types(`filter[timestamp][gte]=${since}&filter[type][eq]=Mandate.Revoked`)).length).toBe(1);
    const [foreign] = await platform.as(ACCT_3).walk(`/v3/platform/events?filter[resourceId][eq]=${id}`);
    expect(foreign).toBeUndefined();
  });

  test('what failed within a time is sent again together, and nothing else', async () => {
    const client = platform.as(ACCT_3);
    const [receiver, path] = await platform.subscribe(client, ['Statement.*']);
    const from = new Date(nowMs).toISOString();
    receiver.answer = 500;
    for (let count = 0; count < 3; count++) await trigger(client, 'Statement.Created');
    await receiver.until('Statement.Created', 3);
    await client.poll(`${path}/deliveries?filter[status][eq]=Failed`, ({ data }) => data.length === 3);
    nowMs += 1000;
    const to = new Date(nowMs).toISOString();
    receiver.answer = 204;
    await trigger(client, 'Statement.Updated');
    await receiver.until('Statement.Updated', 1);
    const send = (body: object) => client.send('POST', `${path}/redeliveries`, body);
    expect((await send({ from, to: from })).status).toBe(422);
    const refused = await send({ from: '2025-12-31T23:59:60Z', to });
    expect([refused.status, refused.body.errors[0]?.field]).toEqual([422, 'from']);
    expect((await send({ from, to: '9999-12-31T23:59:59-23:59' })).body.errors[0]?.field).toBe('to');
    const again = await send({ from, to });
    expect([again.status, again.body.queued]).toEqual([202, 3]);
    expect((await send({ from, to })).body.queued).toBe(0);
    await client.poll(`${path}/deliveries?filter[status][eq]=Delivered`, ({ data }) => data.length === 4);
    expect((await receiver.until('Statement.Updated')).length).toBe(1);
  });

  test('the log is newest first and holds both bodies, bounded and without secrets', async () => {
    const client = platform.as(ACCT_1);
    const [receiver, path] = await platform.subscribe(client, ['Role.Created']);
    receiver.answer = 500;
    receiver.body = JSON.stringify({ reason: 'no disk', api_key: 'sk_live_1', filler: 'x'.repeat(5000) });
    const first = await trigger(client, 'Role.Created');
    await client.poll(`${path}/deliveries`, ({ data }) => (data[0]?.attempts ?? 0) > 0);
    receiver.answer = 200;
    const second = await trigger(client, 'Role.Created');
    await client.poll(`${path}/deliveries`, ({ data }) => data[0]?.status === 'Delivered');
    const { data } = (await client.get(`${path}/deliveries`)).body;
    const read = await Promise.all(data.map(({ id }) => client.get(`${path}/deliveries/${id}`)));
    expect(read.map(({ body }) => JSON.parse(body.requestBody).data.id)).toEqual([second, first]);
    const walked = await client.walk(`${path}/deliveries?page[size]=1`);
    expect(walked.map(({ id }) => id)).toEqual(data.map(({ id }) => id));
    const { responseStatus, responseBody = '' } = read[1]?.body.log.at(-1) ?? {};
    expect([responseStatus, responseBody.length < 2100]).toEqual([500, true]);
    expect(responseBody).toContain('no disk');
    expect(responseBody).not.toContain('sk_live_1');
  });

  test('an event of a Person names the Account that it concerns', async () => {
    const client = platform.as(ACCT_1);
    const [receiver] = await platform.subscribe(client, ['Notification.*', 'ComplianceEntity.*'], {
      scope: 'Person',
    });
    for (const type of ['Notification.Created', 'ComplianceEntity.Created']) {
      await trigger(client, type);
      const [event] = await receiver.until(type);
      expect([event?.recipient, event?.accountId]).toEqual([{ scope: 'Person', id: 'person_1' }, 'acct_1']);
    }
  });
});

import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { ACCT_1, ACCT_2, ACCT_3, type Client, trigger } from './fixtures/client.ts';
import { quickest } from './fixtures/databases.ts';
import { usePlatform } from './fixtures/platform.ts';

const SUBSCRIPTIONS = '/v3/platform/webhook-subscriptions';
const KEYS = '/v3/platform/api-keys';
const SVC_1 = { ...ACCT_1, 'x-principal-id': 'svc_1', 'x-principal-type': 'ServiceAccount' };
const SVC_ORG = { ...SVC_1, 'x-principal-id': 'svc_org' };
/** person_1, acting for acct_2 as X-Service-Account lets it. */
const PERSON_1_FOR_ACCT_2 = { ...ACCT_2, 'x-principal-id': 'person_1' };

/** The operations that change one resource, as `PATCH /v3/things/{thingId}`. */
function writesToOneResource(): string[] {
  const { paths } = parse(readFileSync('platform/openapi.yaml', 'utf8')) as {
    paths: Record<string, Record<string, unknown>>;
  };
  return Object.entries(paths).flatMap(([path, item]) =>
    ['post', 'put', 'patch', 'delete']
      .filter((method) => path.includes('{') && item[method] !== undefined)
      .map((method) => `${method.toUpperCase()} ${path}`),
  );
}

function matches(operation: string, method: string, path: string): boolean {
  const [of, template = ''] = operation.split(' ');
  return of === method && new RegExp(`^${template.replace(/\{\w+\}/g, '[^/]+')}$`).test(path);
}

const REDELIVERY = { from: '2026-01-01T00:00:00Z', to: '2027-01-01T00:00:00Z' };

describe.each([quickest])('on $name', (database) => {
  const platform = usePlatform(database);

  test('a payee reads a payable and cannot open it; a stranger does not see it', async () => {
    const payable = '/v3/payments/payables/payable_2002';
    const payee = platform.as(ACCT_3);
    expect((await payee.get(payable)).status).toBe(200);
    const opened = await payee.send('POST', `${payable}/open`);
    expect([opened.status, opened.body.code]).toEqual([403, 'Forbidden']);
    expect((await platform.as(ACCT_2).get(payable)).body.status).toBe('Draft');
    expect((await platform.as(ACCT_1).send('POST', `${payable}/open`)).status).toBe(404);
    expect((await platform.as(ACCT_2).send('POST', `${payable}/open`)).status).toBe(202);
  });

  test('a counterparty cannot trigger events of resources that it does not own', async () => {
    const resourceId = await trigger(platform.as(ACCT_1), 'Invoice.Paid', {
      counterpartyAccountId: 'acct_2',
    });
    const body = { type: 'Invoice.Returned', resourceId };
    const answer = await platform.as(ACCT_2).send('POST', '/v3/platform/event-triggers', body);
    expect(answer.status).toBe(403);
  });

  test('a ServiceAccount triggers no event of what has more rights', async () => {
    const service = platform.as(SVC_1);
    const { body: ofPerson } = await platform.as(ACCT_1).send('POST', KEYS, { name: 'Mine' });
    const { body: ofGroup } = await platform.as(SVC_ORG).send('POST', KEYS, { name: 'Group' });
    const changes: [string, string][] = [
      ['ApiKey.Revoked', ofPerson.id],
      ['ApiKey.Revoked', ofGroup.id],
      ['ServiceAccount.Disabled', 'svc_org'],
      ['ServiceAccount.Activated', 'svc_org'],
    ];
    const statuses = (client: Client) =>
      Promise.all(
        changes.map(async ([type, resourceId]) => {
          const body = { type, resourceId };
          return (await client.send('POST', '/v3/platform/event-triggers', body)).status;
        }),
      );
    expect(await statuses(service)).toEqual([403, 403, 403, 403]);
    for (const key of [ofPerson, ofGroup])
      expect((await platform.as(ACCT_1).get(`${KEYS}/${key.id}`)).body.status).toBe('Active');
    expect(await statuses(platform.as(SVC_ORG))).toEqual([403, 201, 201, 201]);
    const { body: own } = await platform.as(ACCT_1).send('POST', KEYS, { name: 'Own', principalId: 'svc_1' });
    await trigger(service, 'ApiKey.Revoked', { resourceId: own.id });
    await trigger(platform.as(ACCT_1), 'ApiKey.Revoked', { resourceId: ofPerson.id });
  });

  test('a ServiceAccount of an Account reads the subscriptions of its Organization, and writes none', async () => {
    const person = platform.as(ACCT_1);
    const [, subscription] = await platform.subscribe(person, ['Organization.*'], { scope: 'Organization' });
    await trigger(person, 'Organization.Created');
    const { data } = await person.poll(`${subscription}/deliveries`, ({ data }) => data.length > 0);
    const create = { url: 'https://example.com/hooks', subscribedEvents: ['*'], scope: 'Organization' };
    const writes: [string, string, object?][] = [
      ['POST', SUBSCRIPTIONS, create],
      ['PATCH', subscription, { status: 'Paused' }],
      ['POST', `${subscription}/deliveries/${data[0]?.id}/redeliver`],
      ['POST', `${subscription}/redeliveries`, REDELIVERY],
      ['POST', `${subscription}/rotate-secret`],
      ['DELETE', subscription],
    ];
    const statuses = async (client: Client) => {
      const found: number[] = [];
      for (const write of writes) found.push((await client.send(...write)).status);
      return found;
    };
    const before = (await person.get(subscription)).body;
    expect(await statuses(platform.as(SVC_1))).toEqual(writes.map(() => 403));
    expect((await platform.as(SVC_1).get(subscription)).body).toEqual(before);
    expect(await statuses(platform.as(SVC_ORG))).toEqual([201, 200, 202, 202, 200, 204]);
  });

  test('no write changes a resource of another Account', async () => {
    const owner = platform.as(ACCT_1);
    const { body: file } = await owner.send('POST', '/v3/compliance/vault-files', { name: 'a.pdf' });
    const { body: payee } = await owner.send('POST', '/v3/payments/payees', { name: 'Ada' });
    const { body: key } = await owner.send('POST', '/v3/platform/api-keys', { name: 'ci' });
    const [, subscription] = await platform.subscribe(owner, ['Transfer.*']);
    await trigger(owner, 'Transfer.Created');
    const { data } = await owner.poll(`${subscription}/deliveries`, ({ data }) => data.length === 1);
    const owned = [
      `/v3/compliance/vault-files/${file.id}`,
      `/v3/payments/payees/${payee.id}`,
      `/v3/platform/api-keys/${key.id}`,
      '/v3/payments/payables/payable_1004',
      '/v3/compliance/tax-forms/taxform_1001',
      subscription,
    ];
    const read = () => Promise.all(owned.map(async (path) => (await owner.get(path)).body));
    const before = await read();
    const writes: [string, string, object?][] = [
      ['POST', '/v3/payments/payables/payable_1004/open'],
      ['POST', `/v3/payments/payees/${payee.id}/associate-account`, { accountId: 'acct_9' }],
      ['POST', '/v3/compliance/tax-forms/taxform_1001/submit'],
      ['PATCH', `/v3/compliance/vault-files/${file.id}`, { name: 'b.pdf' }],
      ['POST', `/v3/platform/api-keys/${key.id}/revoke`],
      ['PATCH', subscription, { status: 'Paused' }],
      ['DELETE', subscription],
      ['POST', `${subscription}/deliveries/${data[0]?.id}/redeliver`],
      ['POST', `${subscription}/redeliveries`, REDELIVERY],
      ['POST', `${subscription}/rotate-secret`],
      ['POST', '/v3/platform/event-triggers', { type: 'VaultFile.Updated', resourceId: file.id }],
    ];
    for (const [method, path, body] of writes) {
      for (const stranger of [ACCT_2, ACCT_3]) {
        const { status } = await platform.as(stranger).send(method, path, body);
        expect([403, 404], `${method} ${path} answered ${status}`).toContain(status);
      }
    }
    expect(await read()).toEqual(before);
    const tried = (operation: string) => writes.some(([method, path]) => matches(operation, method, path));
    expect(writesToOneResource().filter((operation) => !tried(operation))).toEqual([]);
  });

  test('an Idempotency-Key belongs to its principal and its Account', async () => {
    const key = { 'idempotency-key': 'subscribe-1' };
    const body = { url: 'https://example.com/hooks', subscribedEvents: ['Invoice.*'] };
    const create = async (who: Record<string, string>) => {
      const answer = await platform.as(who).send('POST', SUBSCRIPTIONS, body, key);
      expect(answer.status).toBe(201);
      return answer.body;
    };
    const [first, again] = [await create(ACCT_1), await create(ACCT_1)];
    expect(again).toEqual(first);
    const reordered = Object.fromEntries(Object.entries(body).reverse());
    const replayed = await platform.as(ACCT_1).send('POST', SUBSCRIPTIONS, reordered, key);
    expect([replayed.headers.get('idempotency-replayed'), replayed.body]).toEqual(['true', first]);
    const others = [await create(SVC_1), await create(PERSON_1_FOR_ACCT_2)];
    expect(new Set([first, ...others].map(({ secret }) => secret)).size).toBe(3);
    expect(new Set([first, ...others].map(({ id }) => id)).size).toBe(3);
  });

  test('a ServiceAccount neither subscribes as a Person nor becomes the recipient of a Person’s events', async () => {
    const service = platform.as(SVC_1);
    const body = { url: 'https://example.com/hooks', subscribedEvents: ['*'], scope: 'Person' };
    const refused = await service.send('POST', SUBSCRIPTIONS, body);
    expect([refused.status, refused.body.errors[0]?.field]).toEqual([422, 'scope']);
    const type = 'Notification.Created';
    expect((await service.send('POST', '/v3/platform/event-triggers', { type })).status).toBe(422);
    const [receiver] = await platform.subscribe(service, ['Operation.*', 'ComplianceEntity.*']);
    await service.send('POST', '/v3/platform/notifications/bulk-dismiss', { notificationIds: ['x'] });
    await trigger(service, 'ComplianceEntity.Created');
    await receiver.until('Operation.Failed');
    await receiver.until('ComplianceEntity.Created');
    expect(receiver.received.map(({ recipient }) => recipient.scope)).toEqual(
      receiver.received.map(() => 'Account'),
    );
  });

  test('a Person who is sent an Operation event polls the operation with or without the target Account', async () => {
    const [receiver] = await platform.subscribe(platform.as(ACCT_1), ['Operation.*'], { scope: 'Person' });
    const acting = platform.as(PERSON_1_FOR_ACCT_2);
    await acting.send('POST', '/v3/payments/payables/payable_2003/open');
    const [event] = await receiver.until('Operation.Completed');
    expect(event?.accountId).toBe('acct_2');
    const path = `/v3/platform/operations/${event?.data.id}`;
    for (const who of [ACCT_1, PERSON_1_FOR_ACCT_2, ACCT_2])
      expect((await platform.as(who).get(path)).body.status).toBe('Completed');
    for (const who of [SVC_1, ACCT_3]) expect((await platform.as(who).get(path)).status).toBe(404);
  });
});

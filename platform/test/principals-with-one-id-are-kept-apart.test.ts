import { createHash } from 'node:crypto';
import { beforeAll, describe, expect, test } from 'vitest';
import { ACCT_1, ACCT_2, ACCT_3, trigger } from './fixtures/client.ts';
import { quickest } from './fixtures/databases.ts';
import { lists } from './fixtures/document.ts';
import { usePlatform } from './fixtures/platform.ts';

const KEYS = '/v3/platform/api-keys';
const PERSON_1_FOR_ACCT_2 = { ...ACCT_2, 'x-principal-id': 'person_1' };
const NAMESAKE_IN_ACCT_1 = { ...ACCT_1, 'x-principal-type': 'ServiceAccount' };
const NAMESAKE_OF_SVC_ORG = {
  'x-account-id': 'acct_9',
  'x-organization-id': 'org_9',
  'x-principal-id': 'svc_org',
  'x-principal-type': 'ServiceAccount',
};

/** Callers of other tenants that have the id of person_1 and are not Persons. */
const NAMESAKES: Readonly<Record<string, Record<string, string>>> = {
  'a ServiceAccount': {
    'x-account-id': 'acct_9',
    'x-principal-id': 'person_1',
    'x-principal-type': 'ServiceAccount',
  },
  'a principal without a type': { 'x-account-id': 'acct_9', 'x-principal-id': 'person_1' },
  'an Account without a principal': { 'x-account-id': 'person_1' },
};

describe.each([quickest])('on $name', (database) => {
  const platform = usePlatform(database);
  /** What only person_1 reads, one of each kind. */
  let ofPerson: string[];
  let subscription: string;
  beforeAll(async () => {
    const person = platform.as(ACCT_1);
    const [, path] = await platform.subscribe(person, ['Transfer.*'], { scope: 'Person' });
    subscription = path;
    const notification = await trigger(person, 'Notification.Created');
    const events = await person.get('/v3/platform/events?filter[type][eq]=Notification.Created');
    const opened = await platform
      .as(PERSON_1_FOR_ACCT_2)
      .send('POST', '/v3/payments/payables/payable_2001/open');
    ofPerson = [
      subscription,
      `${subscription}/deliveries`,
      `/v3/platform/notifications/${notification}`,
      '/v3/platform/mfa-factors/mfa_1001',
      `/v3/platform/events/${events.body.data[0]?.id}`,
      `/v3/platform/operations/${opened.body.id}`,
    ];
    for (const path of ofPerson) expect([path, (await person.get(path)).status]).toEqual([path, 200]);
  });

  test.each(Object.entries(NAMESAKES))(
    '%s with the id of a Person reads nothing of it',
    async (_, namesake) => {
      const client = platform.as(namesake);
      for (const path of ofPerson) expect([path, (await client.get(path)).status]).toEqual([path, 404]);
      for (const { id, path } of lists) {
        if (path.includes('{') || id === 'listWebhookEventTypes') continue;
        expect([path, (await client.get(path)).body.data]).toEqual([path, []]);
      }
    },
  );

  test.each(Object.entries(NAMESAKES))(
    '%s with the id of a Person changes nothing of it',
    async (_, namesake) => {
      const client = platform.as(namesake);
      const writes: [string, string, object?][] = [
        ['POST', `${subscription}/rotate-secret`],
        ['PATCH', subscription, { url: 'https://example.com/hooks' }],
        ['DELETE', subscription],
        [
          'POST',
          '/v3/platform/event-triggers',
          { type: 'Notification.Viewed', resourceId: 'notification_1001' },
        ],
      ];
      for (const [method, path, body] of writes)
        expect([path, (await client.send(method, path, body)).status]).toEqual([path, 404]);
      const { body } = await client.send('POST', '/v3/platform/notifications/bulk-dismiss', {
        notificationIds: ['notification_1001'],
      });
      const ended = await client.poll(
        `/v3/platform/operations/${body.id}`,
        ({ status }) => status !== 'Pending',
      );
      expect([ended.status, ended.error.code]).toEqual(['Failed', 'ResourceNotFound']);
      const { body: notification } = await platform
        .as(ACCT_1)
        .get('/v3/platform/notifications/notification_1001');
      expect(notification.status).toBe('Delivered');
    },
  );

  test('the key of a Person authenticates although a ServiceAccount with its id is switched off', async () => {
    const id = await trigger(platform.as(ACCT_1), 'ServiceAccount.Disabled');
    const person = { 'x-account-id': 'acct_9', 'x-principal-id': id, 'x-principal-type': 'Person' };
    const { body } = await platform.as(person).send('POST', KEYS, { name: 'Mine' });
    const digest = createHash('sha256').update(body.key).digest('hex');
    const owner = await fetch(`${platform.url}/internal/api-keys/${digest}`);
    expect([owner.status, await owner.json()]).toMatchObject([200, { principal: id, account: 'acct_9' }]);
  });

  test('a ServiceAccount with the id of one of another Organization makes no key for that Organization', async () => {
    const { body } = await platform.as(NAMESAKE_OF_SVC_ORG).send('POST', KEYS, { name: 'Own' });
    expect([body.accountId, body.organizationId]).toEqual(['acct_9', undefined]);
    expect((await platform.as(ACCT_1).get(`${KEYS}/${body.id}`)).status).toBe(404);
  });

  test('nobody learns the status of a ServiceAccount of another tenant by asking for a key of it', async () => {
    const disabled = await trigger(platform.as(ACCT_1), 'ServiceAccount.Disabled');
    const details = [disabled, 'svc_1', 'svc_nobody'].map(async (principalId) => {
      const { status, body } = await platform.as(ACCT_3).send('POST', KEYS, { name: 'No', principalId });
      return [status, body.detail];
    });
    expect(new Set((await Promise.all(details)).map(String)).size).toBe(1);
  });

  test('a ServiceAccount with the id of a Person neither continues its lists nor repeats its writes', async () => {
    const [person, namesake] = [platform.as(ACCT_1), platform.as(NAMESAKE_IN_ACCT_1)];
    const { body: page } = await person.get('/v3/payments/payees?page[size]=1');
    const next = `/v3/payments/payees?page[size]=1&page[token]=${page.pagination.nextPageToken}`;
    expect((await person.get(next)).status).toBe(200);
    expect((await namesake.get(next)).status).toBe(422);
    const write = [
      'POST',
      '/v3/platform/webhook-subscriptions',
      { url: 'https://example.com/hooks', subscribedEvents: ['Transfer.*'] },
      { 'idempotency-key': 'namesake-1' },
    ] as const;
    expect((await person.send(...write)).body.secret).toMatch(/^whsec_/);
    const refused = await namesake.send(...write);
    expect([refused.status, refused.body.errors[0]?.field]).toEqual([422, 'Idempotency-Key']);
  });
});

import { beforeAll, describe, expect, test } from 'vitest';
import { ACCT_1, ACCT_2, ACCT_3, type Body, type Client } from './fixtures/client.ts';
import { databases } from './fixtures/databases.ts';
import { operations } from './fixtures/document.ts';
import { usePlatform } from './fixtures/platform.ts';

describe.each(databases)('on $name', (database) => {
  let nowMs = Date.now();
  const platform = usePlatform(database, { now: () => new Date(nowMs) });
  let client: Client;
  beforeAll(() => {
    client = platform.as(ACCT_1);
  });

  test('a walk meets every payee once, whatever the page size, and ends at an empty token', async () => {
    for (const size of [7, 59, 60, 100]) {
      const ids = (await client.walk(`/v3/payments/payees?page[size]=${size}`)).map(({ id }) => id);
      expect(new Set(ids).size).toBe(60);
      expect(ids.length).toBe(60);
    }
  });

  test('a page holds 25 by default and counts all matches', async () => {
    const { body } = await client.get('/v3/payments/payees');
    expect([body.data.length, body.pagination.totalSize]).toEqual([25, 60]);
    const activated = await client.get('/v3/payments/payees?filter[status][eq]=Activated');
    expect(activated.body.pagination.totalSize).toBe(36);
    expect(new Set(activated.body.data.map(({ status }) => status))).toEqual(new Set(['Activated']));
    const late = await client.get('/v3/payments/payees?filter[createdAt][gte]=2026-01-07T09:00:00Z');
    expect(late.body.pagination.totalSize).toBe(12);
    // Between the first payee's millisecond and the next one.
    const between = ['lt', 'gte'].map(async (operator) => {
      const bound = `filter[createdAt][${operator}]=2026-01-05T09:00:00.0009Z`;
      return (await client.get(`/v3/payments/payees?${bound}`)).body.pagination.totalSize;
    });
    expect(await Promise.all(between)).toEqual([1, 59]);
    const last = '9999-12-31T23:59:59.9995Z';
    for (const [operator, total] of [
      ['lt', 60],
      ['gte', 0],
    ]) {
      const { status, body } = await client.get(`/v3/payments/payees?filter[createdAt][${operator}]=${last}`);
      expect([status, body.pagination?.totalSize]).toEqual([200, total]);
    }
  });

  test.each([
    ['page[size]=0', 'page[size]'],
    ['page[size]=101', 'page[size]'],
    ['page[size]=many', 'page[size]'],
    ['pageSize=5', 'pageSize'],
    ['limit=5', 'limit'],
    ['filter[email][eq]=x', 'filter[email][eq]'],
    ['filter[createdAt][gte]=yesterday', 'filter[createdAt][gte]'],
    ['filter[createdAt][lt]=9999-12-31T23:59:59-23:59', 'filter[createdAt][lt]'],
    ['filter[createdAt][gte]=0000-12-31T23:59:59Z', 'filter[createdAt][gte]'],
    ['filter[createdAt][lt]=2025-12-31T23:59:60Z', 'filter[createdAt][lt]'],
    ['=1', ''],
    ['page[token]=nonsense', 'page[token]'],
  ])('%s is 422 naming %s, with exactly the members of a problem', async (query, field) => {
    const { status, headers, body } = await client.get(`/v3/payments/payees?${query}`);
    expect([status, body.code, body.errors[0]?.field]).toEqual([422, 'ValidationError', field]);
    expect(headers.get('content-type')).toMatch(/^application\/problem\+json/);
    const members = ['type', 'title', 'status', 'detail', 'code', 'requestId', 'extensions', 'errors'];
    expect(Object.keys(body).sort()).toEqual(members.sort());
    expect(body.type).toMatch(/\/errors\/validation-error$/);
  });

  test('a token of another filter, another list, another Account or another time is 422', async () => {
    const { body } = await client.get('/v3/payments/payees?page[size]=5');
    const token = `page[token]=${body.pagination.nextPageToken}`;
    expect((await client.get(`/v3/payments/payees?page[size]=9&${token}`)).status).toBe(200);
    expect((await client.get(`/v3/payments/payees?filter[status][eq]=Activated&${token}`)).status).toBe(422);
    expect((await client.get(`/v3/payments/payables?${token}`)).status).toBe(422);
    expect((await platform.as(ACCT_2).get(`/v3/payments/payees?${token}`)).status).toBe(422);
    const colleague = platform.as({ ...ACCT_1, 'x-principal-id': 'person_2' });
    expect((await colleague.get(`/v3/payments/payees?${token}`)).status).toBe(422);
    nowMs += 901_000;
    const late = await client.get(`/v3/payments/payees?page[size]=5&${token}`);
    expect([late.status, late.body.errors[0]?.field]).toEqual([422, 'page[token]']);
  });

  test('Accounts and Persons reject a page token that does not match', async () => {
    for (const list of ['accounts', 'persons']) {
      const first = await client.get(`/v3/platform/${list}`);
      const again = await client.get(`/v3/platform/${list}?page[token]=nonsense`);
      expect(again.status).toBe(200);
      expect(again.body.data).toEqual(first.body.data);
    }
  });

  test('an Account sees the Accounts of its Organization, and without one only itself', async () => {
    const ids = async (who: Record<string, string>) =>
      (await platform.as(who).walk('/v3/platform/accounts')).map(({ id }) => id);
    expect(await ids(ACCT_1)).toEqual(['acct_1', 'acct_2']);
    expect(await ids(ACCT_3)).toEqual(['acct_3']);
  });

  test('audit logs hold every write, at most 25 a page, uncounted', async () => {
    for (let i = 0; i < 30; i++) await client.send('POST', '/v3/platform/sessions');
    const { body } = await client.get('/v3/platform/audit-logs');
    expect(body.data.length).toBe(25);
    expect(body.pagination).not.toHaveProperty('totalSize');
    const all = await client.walk('/v3/platform/audit-logs?page[size]=25');
    expect(all.filter(({ operation }) => operation === 'createSession').length).toBe(30);
    expect((await client.get('/v3/platform/audit-logs?page[size]=26')).status).toBe(422);
  });

  test('an audit record names what was created', async () => {
    const client = platform.as(ACCT_1);
    const payeeId = 'payee_1001';
    const money = { payeeId, amount: '1.00', currency: 'EUR' };
    const creates: Readonly<Record<string, object>> = {
      '/v3/compliance/vault-files': { name: 'a.pdf' },
      '/v3/payments/invoices': money,
      '/v3/payments/payables': money,
      '/v3/payments/payees': { name: 'Ada' },
      '/v3/platform/api-keys': { name: 'Nightly' },
      '/v3/platform/event-triggers': { type: 'Mandate.Created' },
      '/v3/platform/notifications/bulk-dismiss': { notificationIds: ['notification_1001'] },
      '/v3/platform/sessions': {},
      '/v3/platform/webhook-subscriptions': { url: 'https://example.com/', subscribedEvents: ['*'] },
    };
    const withoutId = operations.filter(({ method, path }) => method !== 'GET' && !path.includes('{'));
    expect(withoutId.map(({ path }) => path)).toEqual(Object.keys(creates));
    const ids: string[] = [];
    for (const [path, body] of Object.entries(creates)) {
      const answer = await client.send('POST', path, body);
      expect([path, answer.status < 300]).toEqual([path, true]);
      ids.push(answer.body.id ?? answer.body.resource.id);
    }
    const logs = (await client.walk('/v3/platform/audit-logs')) as (Body & { readonly target: string })[];
    expect(logs.slice(-ids.length).map(({ target }) => target)).toEqual(ids);
    expect(logs.filter(({ target }) => target === '')).toEqual([]);
  });

  test('resources of another Account cannot be read', async () => {
    expect((await client.get('/v3/payments/payees/payee_1001')).status).toBe(200);
    const { status, body } = await client.get('/v3/payments/payees/payee_2001');
    expect([status, body.code]).toEqual([404, 'ResourceNotFound']);
  });

  test('every event type is listed with every field', async () => {
    const { body } = await client.get('/v3/platform/webhook-event-types');
    const published = body.data.filter(({ contractStatus }) => contractStatus === 'Published');
    expect(published.length).toBe(111);
    for (const type of body.data) {
      expect(Object.keys(type)).toEqual([
        ...['type', 'contractStatus', 'availableForSubscription', 'resource', 'domain', 'payloadTier'],
        ...['moneyMovement', 'allowedRoutingSubjectTypes', 'description'],
      ]);
      expect(type).toMatchObject({ availableForSubscription: type.contractStatus === 'Published' });
    }
  });

  test('event types are paged and filtered like every list', async () => {
    const path = '/v3/platform/webhook-event-types';
    const whole = (await client.get(path)).body;
    expect([whole.pagination.nextPageToken, whole.data.length]).toEqual(['', whole.pagination.totalSize]);
    const walked = await client.walk(`${path}?page[size]=25`);
    expect(walked).toEqual(whole.data);
    const ofInvoices = await client.get(`${path}?filter[resource][eq]=Invoice&page[size]=3`);
    expect([ofInvoices.body.data.length, ofInvoices.body.pagination.totalSize]).toEqual([3, 5]);
    const planned = await client.walk(`${path}?filter[availableForSubscription][eq]=false`);
    expect(planned).toEqual(whole.data.filter(({ contractStatus }) => contractStatus === 'Planned'));
    for (const query of ['page[size]=0', 'page[size]=101', 'limit=3', 'page[token]=x'])
      expect((await client.get(`${path}?${query}`)).status, query).toBe(422);
  });

  test('a request that did not come through the gateway is 401', async () => {
    expect((await platform.as({}).get('/v3/payments/payees')).status).toBe(401);
  });

  test('an unsupported method is a 405 with the supported methods; a body that is not JSON is 400', async () => {
    const wrong = await client.send('DELETE', '/v3/payments/mandates');
    expect([wrong.status, wrong.body.code, wrong.headers.get('allow')]).toEqual([
      405,
      'MethodNotAllowed',
      'GET, HEAD, OPTIONS',
    ]);
    const text = { 'content-type': 'text/plain' };
    const plain = await client.send('POST', '/v3/platform/sessions', 'ttl', text);
    expect([plain.status, plain.body.code]).toEqual([400, 'BadRequest']);
    const unknown = await client.send('POST', '/v3/platform/sessions', { ttl: 60 });
    expect([unknown.status, unknown.body.errors[0]?.field]).toEqual([422, 'ttl']);
    expect((await client.get('/v3/payments/nothing')).status).toBe(404);
  });

  test('a value that the database cannot store is a 422, not a failure of the service', async () => {
    for (const path of ['/v3/payments/payees', '/v3/platform/audit-logs']) {
      const { status, body } = await client.get(`${path}?filter[createdAt][gte]=0000-01-01T00:00:00Z`);
      expect([status, body.errors[0]?.field]).toEqual([422, 'filter[createdAt][gte]']);
    }
    expect((await client.get('/v3/payments/payees?filter[status][eq]=a%00b')).status).toBe(422);
    const file = await client.send('POST', '/v3/compliance/vault-files', { name: 'a\u0000b' });
    expect([file.status, file.body.code]).toEqual([422, 'ValidationError']);
    expect((await client.send('POST', '/v3/compliance/vault-files', { name: 'a\ud800b' })).status).not.toBe(
      503,
    );
  });
});

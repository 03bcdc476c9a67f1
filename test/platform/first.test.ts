import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Platform, startPlatform } from '../../src/platform/server.ts';

interface Body {
  readonly data: readonly { readonly id: string; readonly contractStatus?: string }[];
  readonly pagination: { readonly nextPageToken: string };
  readonly id: string;
  readonly code: string;
  readonly requestId: string;
  readonly errors: readonly { readonly field: string }[];
}

let platform: Platform;
beforeAll(async () => {
  platform = await startPlatform({ host: '127.0.0.1', port: 0 });
});
afterAll(() => platform.close());

const call = async (path: string, init: RequestInit = {}) => {
  const headers = { 'x-account-id': 'acct_1', 'x-request-id': 'req-1', ...(init.headers as object) };
  const response = await fetch(platform.url + path, { ...init, headers });
  return {
    status: response.status,
    type: response.headers.get('content-type'),
    body: (await response.json()) as Body,
  };
};

test('a walk over the payees meets every one once and ends at an empty token', async () => {
  const seen: string[] = [];
  let token = '';
  do {
    const { body } = await call(
      `/v3/payments/payees?page[size]=7${token && `&page[token]=${encodeURIComponent(token)}`}`,
    );
    seen.push(...body.data.map((payee) => payee.id));
    token = body.pagination.nextPageToken;
  } while (token !== '');
  expect(new Set(seen).size).toBe(seen.length);
  expect(seen.length).toBe(60);
});

test('a page size outside 1 to 100, an unknown parameter and a foreign token are 422 naming the field', async () => {
  for (const [query, field] of [
    ['page[size]=0', 'page[size]'],
    ['page[size]=101', 'page[size]'],
    ['limit=5', 'limit'],
    ['page[token]=nonsense', 'page[token]'],
  ]) {
    const { status, type, body } = await call(`/v3/payments/payees?${query}`);
    expect([status, body.code, body.errors[0]?.field, body.requestId]).toEqual([
      422,
      'ValidationError',
      field,
      'req-1',
    ]);
    expect(type).toMatch(/^application\/problem\+json/);
    expect(Object.keys(body).sort()).toEqual(
      ['code', 'detail', 'errors', 'extensions', 'requestId', 'status', 'title', 'type'].sort(),
    );
  }
});

test('opening a payable is accepted and its operation can be polled', async () => {
  const opened = await call('/v3/payments/payables/payable_1001/open', { method: 'POST' });
  expect(opened.status).toBe(202);
  const polled = await call(`/v3/platform/operations/${opened.body.id}`);
  expect(polled.status).toBe(200);
  expect((await call('/v3/payments/payables/payable_2001/open', { method: 'POST' })).status).toBe(404);
});

test('the event type listing holds the 111 published types and the reserved ones', async () => {
  const { body } = await call('/v3/platform/webhook-event-types');
  const published = body.data.filter((type) => type.contractStatus === 'Published');
  expect(published.length).toBe(111);
  expect(body.data.length).toBeGreaterThan(111);
});

test('sessions, tax forms, bulk dismissal and MFA factors answer', async () => {
  expect((await call('/v3/platform/sessions', { method: 'POST' })).status).toBe(201);
  expect((await call('/v3/compliance/tax-forms/taxform_1001/submit', { method: 'POST' })).status).toBe(200);
  expect((await call('/v3/platform/mfa-factors')).status).toBe(200);
  const dismissed = await call('/v3/platform/notifications/bulk-dismiss', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ notificationIds: ['notification_1001'] }),
  });
  expect(dismissed.status).toBe(202);
});

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { remainingOf, startGateway, type TestGateway } from '../fixtures/gateway.ts';
import { STORES } from '../fixtures/stores.ts';

describe.each(STORES)('with the $kind store', ({ store }) => {
  let gateway: TestGateway;
  beforeAll(async () => {
    gateway = await startGateway({ store: store() });
  });
  afterAll(() => gateway.close());

  it.each([
    ['GET', '/v3/things/t1', 'read'],
    ['HEAD', '/v3/things/t1', 'read'],
    ['QUERY', '/v3/things', 'read'],
    ['POST', '/v3/things', 'write'],
    ['PATCH', '/v3/things/t1', 'write'],
    ['PUT', '/v3/things/t1', 'write'],
    ['DELETE', '/v3/things/t1', 'write'],
  ])('%s is charged to the Account and to its Organization', async (method, path, kind) => {
    const first = remainingOf(await gateway.send(method, path));
    const second = remainingOf(await gateway.send(method, path));
    const names = [`account-${kind}`, `organization-${kind}`];
    expect(Object.keys(second ?? {})).toEqual(names);
    for (const name of names) expect(second?.[name]).toBe((first?.[name] ?? 0) - 1);
  });

  it('OPTIONS is forwarded without a token and without a charge', async () => {
    const before = remainingOf(await gateway.send('GET', '/v3/things'));
    const answer = await gateway.send('OPTIONS', '/v3/things', { token: null, account: 'acct_4' });
    expect(answer.status).toBe(200);
    expect(answer.headers.get('RateLimit-Policy')).toBeNull();
    const seen = gateway.upstream.seen.at(-1);
    expect(seen?.method).toBe('OPTIONS');
    // Nobody checked that the client may act for this Account.
    expect(seen?.headers).not.toHaveProperty('x-service-account');
    const after = remainingOf(await gateway.send('GET', '/v3/things'));
    expect(after?.['account-read']).toBe((before?.['account-read'] ?? 0) - 1);
  });

  it('an operation has the cost in its document', async () => {
    const before = remainingOf(await gateway.send('POST', '/v3/things'));
    const after = remainingOf(await gateway.send('POST', '/v3/reports'));
    expect(after?.['account-write']).toBe((before?.['account-write'] ?? 0) - 7);
  });

  it('an Account without an Organization has two buckets, and no Organization in its headers', async () => {
    const answer = await gateway.send('GET', '/v3/things', { token: 'lonely' });
    expect(answer.headers.get('RateLimit-Policy')).toBe(
      '"account-read";q=20;w=60, "account-write";q=20;w=60',
    );
    expect(remainingOf(answer)).toEqual({ 'account-read': 19 });
  });

  it('an unsupported method is a 405 with the supported methods, uncharged', async () => {
    const answer = await gateway.send('PROPFIND', '/v3/things');
    expect(answer.status).toBe(405);
    expect(answer.headers.get('Allow')).toBe('GET, HEAD, QUERY, POST, PUT, PATCH, DELETE, OPTIONS');
    expect(answer.headers.get('RateLimit')).toBeNull();
    expect(await answer.json()).toMatchObject({ code: 'MethodNotAllowed', status: 405 });
  });
});

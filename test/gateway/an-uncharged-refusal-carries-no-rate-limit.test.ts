import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { remainingOf, startGateway, type TestGateway } from '../fixtures/gateway.ts';
import { STORES } from '../fixtures/stores.ts';

describe.each(STORES)('with the $kind store', ({ store }) => {
  let gateway: TestGateway;
  beforeAll(async () => {
    gateway = await startGateway({
      store: store(),
      settings: { operations: { openapi: 'openapi.yaml', unlisted: 'reject' } },
    });
  });
  afterAll(() => gateway.close());

  it.each([
    ['no token', '/v3/things', { token: null }, 401, 'Unauthenticated'],
    ['an unknown token', '/v3/things', { token: 'made-up' }, 401, 'Unauthenticated'],
    [
      'credentials of another scheme',
      '/v3/things',
      { token: null, headers: { Authorization: 'Basic eA==' } },
      401,
      'Unauthenticated',
    ],
    ['a foreign Account', '/v3/things', { token: 'person', account: 'acct_4' }, 403, 'Forbidden'],
    ['an unknown Account', '/v3/things', { token: 'person', account: 'nobody' }, 403, 'Forbidden'],
    [
      'a service of an Organization that names no Account',
      '/v3/things',
      { token: 'organization' },
      403,
      'Forbidden',
    ],
    [
      'a service that calls a Person-only operation',
      '/v3/mfa-factors',
      { token: 'service' },
      403,
      'Forbidden',
    ],
    ['an operation that is not listed', '/v3/nothing', { token: 'service' }, 404, 'ResourceNotFound'],
    ['a path that could be read in two ways', '/v3//things', { token: 'service' }, 400, 'BadRequest'],
  ])('%s is refused and spends nothing', async (_, path, options, status, code) => {
    const before = remainingOf(await gateway.send('GET', '/v3/things'))?.['account-read'] ?? 0;
    const seen = gateway.upstream.seen.length;
    const answer = await gateway.send('GET', path, options);
    expect(answer.status).toBe(status);
    expect(await answer.json()).toMatchObject({ code, status });
    for (const name of ['RateLimit', 'RateLimit-Policy', 'Service-RateLimit-Mode', 'Retry-After']) {
      expect(answer.headers.get(name)).toBeNull();
    }
    expect(gateway.upstream.seen).toHaveLength(seen);
    expect(remainingOf(await gateway.send('GET', '/v3/things'))?.['account-read']).toBe(before - 1);
  });

  it('foreign and unknown Accounts get the same answer', async () => {
    const answers = await Promise.all(
      ['acct_4', 'nobody'].map(async (account) => {
        const body = await (await gateway.send('GET', '/v3/things', { token: 'person', account })).json();
        return { ...(body as object), requestId: '' };
      }),
    );
    expect(answers[0]).toEqual(answers[1]);
  });
});

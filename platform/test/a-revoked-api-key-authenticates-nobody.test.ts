import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startGateway, type TestGateway } from '../../test/fixtures/gateway.ts';
import { type Client, createClient, trigger } from './fixtures/client.ts';
import { databases } from './fixtures/databases.ts';
import { usePlatform } from './fixtures/platform.ts';

const KEYS = '/v3/platform/api-keys';
const PLENTY = Object.fromEntries(
  ['account', 'organization', 'person'].flatMap((scope) => [
    [`${scope}-read`, 100_000],
    [`${scope}-write`, 100_000],
  ]),
);

describe.each(databases)('on $name', (database) => {
  const platform = usePlatform(database);
  // Two replicas of the gateway, which share nothing but the platform behind them.
  const gateways: TestGateway[] = [];
  let person: Client;
  beforeAll(async () => {
    const upstream = { url: platform.url, seen: [], close: async () => undefined };
    const settings = {
      identity: { kind: 'api-keys', file: 'identities.yaml' },
      operations: { unlisted: 'charge' },
      // The embedded database shares this process and blocks its event loop: no sign of overload.
      listen: { port: 0, maxEventLoopDelayMs: 0 },
    };
    const limits = { windowSeconds: 1, defaults: PLENTY };
    for (let count = 0; count < 2; count++) gateways.push(await startGateway({ upstream, settings, limits }));
    person = createClient(gateways[0]?.url ?? '', { authorization: 'Bearer person' });
  });
  afterAll(async () => {
    for (const gateway of gateways) await gateway.close();
  });

  const holders = (key: string) =>
    gateways.map(({ url }) => createClient(url, { authorization: `Bearer ${key}` }));
  const statuses = (key: string) =>
    Promise.all(holders(key).map(async (client) => (await client.get('/v3/payments/payees')).status));

  test('a key works at every replica until it is revoked, and at none with the next request', async () => {
    const { status, body } = await person.send('POST', KEYS, { name: 'Nightly', principalId: 'svc_1' });
    expect([status, body.status, body.accountId]).toEqual([201, 'Active', 'acct_1']);
    expect(await statuses(body.key)).toEqual([200, 200]);
    const revoked = await person.send('POST', `${KEYS}/${body.id}/revoke`);
    expect([revoked.status, revoked.body.status]).toEqual([200, 'Revoked']);
    expect(await statuses(body.key)).toEqual([401, 401]);
    const again = await person.send('POST', `${KEYS}/${body.id}/revoke`);
    expect([again.status, again.body.events]).toEqual([200, revoked.body.events]);
  });

  test('no request that is sent after the revocation shares an answer from before it', async () => {
    const { body } = await person.send('POST', KEYS, { name: 'Busy', principalId: 'svc_1' });
    let isRevoked = false;
    const callUntilRefused = async (client: Client | undefined) => {
      for (;;) {
        const isSentAfter = isRevoked;
        const { status } = (await client?.get('/v3/payments/payees?page[size]=1')) ?? {};
        if (status === 401) return;
        if (isSentAfter) throw new Error(`a request after the revocation was answered ${status}`);
      }
    };
    const callers = [...holders(body.key), ...holders(body.key), ...holders(body.key)].map(callUntilRefused);
    await person.send('POST', `${KEYS}/${body.id}/revoke`);
    isRevoked = true;
    await Promise.all(callers);
  });

  test('the key is shown once: neither in lists nor to a repetition', async () => {
    const idempotent = { 'idempotency-key': 'issue-1' };
    const first = await person.send('POST', KEYS, { name: 'Once' }, idempotent);
    expect(first.body.key).toMatch(/^wk_[\w-]{43}$/);
    const second = await person.send('POST', KEYS, { name: 'Once' }, idempotent);
    expect([second.status, second.body.id, second.body.key]).toEqual([201, first.body.id, undefined]);
    expect([first, second].map(({ headers }) => headers.get('idempotency-replayed'))).toEqual([null, 'true']);
    const listed = await person.walk(`${KEYS}?filter[principalId][eq]=person_1`);
    expect(listed.map(({ id }) => id)).toContain(first.body.id);
    expect(JSON.stringify(listed)).not.toContain(first.body.key);
    expect((await holders(first.body.key)[0]?.get('/v3/platform/mfa-factors'))?.status).toBe(200);
  });

  test('ApiKey.Created and ApiKey.Revoked reach the Account and, for its own key, the Person', async () => {
    const [ofAccount] = await platform.subscribe(person, ['ApiKey.*']);
    const [ofPerson] = await platform.subscribe(person, ['ApiKey.*'], { scope: 'Person' });
    const ids: string[] = [];
    for (const principalId of ['svc_1', 'person_1']) {
      const { body } = await person.send('POST', KEYS, { name: 'Events', principalId });
      await person.send('POST', `${KEYS}/${body.id}/revoke`);
      ids.push(body.id);
    }
    for (const type of ['ApiKey.Created', 'ApiKey.Revoked']) {
      expect((await ofAccount.until(type, 2)).map(({ data }) => data.id).sort()).toEqual([...ids].sort());
      expect((await ofPerson.until(type, 1)).map(({ data }) => data.id)).toEqual([ids[1]]);
    }
  });

  test('a key never grants more than its issuer is allowed', async () => {
    for (const principalId of ['person_2', 'svc_org', 'svc_3', 'svc_nobody']) {
      const { status, body } = await person.send('POST', KEYS, { name: 'No', principalId });
      expect([principalId, status, body.errors?.[0]?.field]).toEqual([principalId, 422, 'principalId']);
    }
    const service = createClient(gateways[0]?.url ?? '', {
      authorization: 'Bearer organization',
      'x-service-account': 'acct_2',
    });
    const own = await service.send('POST', KEYS, { name: 'Group' });
    expect([own.status, own.body.principalId]).toEqual([201, 'svc_org']);
  });

  test('a key that a Person makes while acting for another Account works, is listed and is revoked there alone', async () => {
    const [own = '', other = ''] = ['acct_1', 'acct_2'];
    const acting = createClient(gateways[0]?.url ?? '', {
      authorization: 'Bearer person',
      'x-service-account': other,
    });
    const { body } = await acting.send('POST', KEYS, { name: 'Elsewhere' });
    expect([body.accountId, body.principalId]).toEqual([other, 'person_1']);
    const [holder] = holders(body.key);
    const statusFor = async (account?: string) => {
      const target = account === undefined ? {} : { 'x-service-account': account };
      return (await holder?.send('GET', '/v3/payments/payees', undefined, target))?.status;
    };
    expect(await Promise.all([undefined, other, own, 'acct_3'].map(statusFor))).toEqual([200, 200, 403, 403]);
    const payees = await holder?.walk('/v3/payments/payees?filter[status][eq]=Activated');
    expect(new Set(payees?.map(({ accountId }) => accountId))).toEqual(new Set([other]));
    const listed = async (client: Client) => (await client.walk(KEYS)).some(({ id }) => id === body.id);
    expect([await listed(person), await listed(acting)]).toEqual([false, true]);
    expect((await person.get(`${KEYS}/${body.id}`)).status).toBe(404);
    expect((await person.send('POST', `${KEYS}/${body.id}/revoke`)).status).toBe(404);
    expect((await acting.send('POST', `${KEYS}/${body.id}/revoke`)).status).toBe(200);
    expect(await statusFor(other)).toBe(401);
  });

  test('a key of a Person for its own Account acts for the others too', async () => {
    const { body } = await person.send('POST', KEYS, { name: 'Own' });
    const answer = await holders(body.key)[0]?.send('GET', '/v3/payments/payees', undefined, {
      'x-service-account': 'acct_2',
    });
    expect(answer?.status).toBe(200);
  });

  test('a ServiceAccount does not revoke the key of a Person, but its own', async () => {
    const service = createClient(gateways[0]?.url ?? '', { authorization: 'Bearer service' });
    const { body: ofPerson } = await person.send('POST', KEYS, { name: 'Mine' });
    const { body: ofService } = await person.send('POST', KEYS, { name: 'Its own', principalId: 'svc_1' });
    expect((await service.send('POST', `${KEYS}/${ofPerson.id}/revoke`)).status).toBe(403);
    expect(await statuses(ofPerson.key)).toEqual([200, 200]);
    expect((await service.send('POST', `${KEYS}/${ofService.id}/revoke`)).status).toBe(200);
  });

  test('a key of an Organization is revoked by its principal or a Person, and not by a ServiceAccount of an Account', async () => {
    const url = gateways[0]?.url ?? '';
    const service = createClient(url, { authorization: 'Bearer service' });
    const organization = createClient(url, {
      authorization: 'Bearer organization',
      'x-service-account': 'acct_2',
    });
    for (const allowed of [organization, person]) {
      const { body } = await organization.send('POST', KEYS, { name: 'Group' });
      const revoke = async (client: Client) => {
        const answer = await client.send('POST', `${KEYS}/${body.id}/revoke`);
        return [answer.status, answer.body.status];
      };
      expect(await revoke(service)).toEqual([403, 403]);
      expect((await person.get(`${KEYS}/${body.id}`)).body.status).toBe('Active');
      expect(await revoke(allowed)).toEqual([200, 'Revoked']);
    }
  });

  test('no key is issued for a ServiceAccount that is switched off', async () => {
    for (const part of ['Inactivated', 'Disabled']) {
      const principalId = await trigger(person, `ServiceAccount.${part}`);
      const { status, body } = await person.send('POST', KEYS, { name: 'Off', principalId });
      expect([status, body.errors?.[0]?.field]).toEqual([422, 'principalId']);
    }
  });

  test('an answer that shows a secret is stored by nobody, and neither is its repetition', async () => {
    const subscription = { url: 'https://example.com/', subscribedEvents: ['Role.*'] };
    const hooks = '/v3/platform/webhook-subscriptions';
    const key = { 'idempotency-key': 'secret-1' };
    const created = await person.send('POST', hooks, subscription, key);
    const rotate = `${hooks}/${created.body.id}/rotate-secret`;
    for (const [path, body, headers] of [
      [hooks, subscription, key],
      [rotate, {}, { 'idempotency-key': 'secret-2' }],
      [rotate, {}, { 'idempotency-key': 'secret-2' }],
      [KEYS, { name: 'Secret' }, {}],
    ] as const) {
      const answer = await person.send('POST', path, body, headers);
      expect([path, answer.headers.get('cache-control')]).toEqual([path, 'no-store']);
    }
    expect(created.headers.get('cache-control')).toBe('no-store');
    expect((await person.get(KEYS)).headers.get('cache-control')).toBe(null);
  });

  test('clients can use neither keys that were not issued nor the endpoint for digests', async () => {
    expect(await statuses(`wk_${'a'.repeat(43)}`)).toEqual([401, 401]);
    const { status } = await person.get(`/internal/api-keys/${'0'.repeat(64)}`);
    expect(status).toBe(404);
  });
});

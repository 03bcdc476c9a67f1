import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startGateway, type TestGateway } from '../fixtures/gateway.ts';
import { type Client, createClient } from './fixtures/client.ts';
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

  test('clients can use neither keys that were not issued nor the endpoint for digests', async () => {
    expect(await statuses(`wk_${'a'.repeat(43)}`)).toEqual([401, 401]);
    const { status } = await person.get(`/internal/api-keys/${'0'.repeat(64)}`);
    expect(status).toBe(404);
  });
});

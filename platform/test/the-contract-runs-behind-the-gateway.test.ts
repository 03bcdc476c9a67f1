import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startGateway, type TestGateway } from '../../test/fixtures/gateway.ts';
import { type Client, createClient } from './fixtures/client.ts';
import { databases } from './fixtures/databases.ts';
import { usePlatform } from './fixtures/platform.ts';

const OPENAPI = fileURLToPath(new URL('../openapi.yaml', import.meta.url));
const LIMITS = {
  'account-read': 500,
  'account-write': 250,
  'organization-read': 2000,
  'organization-write': 1000,
};

describe.each(databases)('on $name', (database) => {
  let nowMs = Date.now();
  const platform = usePlatform(database, { now: () => new Date(nowMs), snapshotLifetimeSeconds: 600 });
  let gateway: TestGateway;
  let payer: Client;
  let payee: Client;
  beforeAll(async () => {
    gateway = await startGateway({
      upstream: { url: platform.url, seen: [], close: async () => undefined },
      limits: {
        windowSeconds: 1,
        defaults: { ...LIMITS, 'person-read': 500, 'person-write': 250 },
        // Room for one session of 10 points a second.
        accounts: { acct_3: { 'account-write': 10 } },
      },
      settings: {
        operations: { openapi: OPENAPI, unlisted: 'reject' },
        // The embedded database shares this process and blocks its event loop: no sign of overload.
        listen: { port: 0, maxEventLoopDelayMs: 0 },
      },
    });
    payer = createClient(gateway.url, { authorization: 'Bearer person' });
    payee = createClient(gateway.url, { authorization: 'Bearer person', 'x-service-account': 'acct_2' });
  });
  afterAll(() => gateway?.close());

  test('a client subscribes, opens a payable, polls the operation, and both parties receive signed events', async () => {
    const [ofPayer] = await platform.subscribe(payer, ['Payable.*', 'Operation.*', 'FundsMovement.*']);
    const [ofPayee] = await platform.subscribe(payee, ['*']);
    const key = { 'idempotency-key': 'open-payable_1001' };
    const opened = await payer.send('POST', '/v3/payments/payables/payable_1001/open', undefined, key);
    expect(opened.status).toBe(202);
    expect(opened.headers.get('ratelimit')).toContain('"account-write";r=');
    const again = await payer.send('POST', '/v3/payments/payables/payable_1001/open', undefined, key);
    expect([again.status, again.body.id]).toEqual([202, opened.body.id]);
    const operation = await payer.poll(
      `/v3/platform/operations/${opened.body.id}`,
      ({ status }) => status !== 'Pending',
    );
    expect(operation).toMatchObject({ status: 'Completed', result: { payableId: 'payable_1001' } });
    const [[one], [other]] = await Promise.all([
      ofPayer.until('Payable.Paid'),
      ofPayee.until('Payable.Paid'),
    ]);
    expect(one?.occurrenceId).toBe(other?.occurrenceId);
    expect([one?.recipient.id, other?.recipient.id]).toEqual(['acct_1', 'acct_2']);
    await ofPayer.until('Operation.Completed');
    expect([...ofPayer.unverified, ...ofPayee.unverified]).toEqual([]);
  });

  test('a client walks the payees, and the gateway refuses what the contract does not define', async () => {
    const ids = (await payer.walk('/v3/payments/payees?page[size]=25')).map(({ id }) => id);
    expect([ids.length, new Set(ids).size]).toEqual([60, 60]);
    const refused = await payer.get('/v3/payments/payees?limit=5');
    expect([refused.status, refused.body.errors[0]?.field]).toEqual([422, 'limit']);
    expect(refused.headers.has('ratelimit')).toBe(true);
    expect((await payer.get('/v3/payments/unheard-of')).status).toBe(404);
    expect((await payer.get('/v3/platform/mfa-factors')).body.data.length).toBe(2);
  });

  test('a client pages a snapshot until it expires', async () => {
    const first = await payer.get('/v3/search/payees?page[mode]=materialized&page[size]=20');
    const { resultSetId, totalSize } = first.body.pagination;
    const path = `/v3/search/payees?page[mode]=materialized&page[size]=20&page[resultSetId]=${resultSetId}`;
    expect((await payer.walk(path)).length).toBe(totalSize);
    nowMs += 600_001;
    const late = await payer.get(path);
    expect([late.status, late.body.code]).toEqual([404, 'ResourceNotFound']);
  });

  test('a 429 reaches nobody, and its Idempotency-Key works on the retry', async () => {
    const small = createClient(gateway.url, { authorization: 'Bearer lonely' });
    const create = (key: string) =>
      small.send('POST', '/v3/platform/sessions', { ttlSeconds: 60 }, { 'idempotency-key': key });
    // At once: both are charged within the window, however long the first one takes.
    const keys = ['first', 'second'];
    const answers = await Promise.all(keys.map(create));
    const isRefused = answers.map(({ status }) => status === 429);
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 429]);
    const refused = answers[isRefused.indexOf(true)];
    expect(refused?.body.code).toBe('RateLimitExceeded');
    const sessions = async () => (await small.walk('/v3/platform/audit-logs')).length;
    expect(await sessions()).toBe(1);
    const waitSeconds = Number(refused?.headers.get('retry-after'));
    await new Promise((resolve) => setTimeout(resolve, waitSeconds * 1000));
    const retried = await create(keys[isRefused.indexOf(true)] ?? '');
    expect(retried.status).toBe(201);
    expect(await sessions()).toBe(2);
  });
});

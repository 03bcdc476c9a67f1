import { afterEach, describe, expect, it } from 'vitest';
import { remainingOf, startGateway, type TestGateway } from '../fixtures/gateway.ts';
import { STORES } from '../fixtures/stores.ts';

describe.each(STORES)('with the $kind store', ({ store }) => {
  let gateway: TestGateway;
  afterEach(() => gateway.close());

  const send = (count: number) =>
    Promise.all(Array.from({ length: count }, () => gateway.send('GET', '/v3/things', { token: 'lonely' })));
  const admitted = (answers: readonly Response[]) => answers.filter(({ status }) => status === 200).length;
  const shadowDenied = async () =>
    (await gateway.metrics()).match(/weir_shadow_denied_total\{bucket="account-read"\} (\d+)/)?.[1];

  it('reports what it would have refused, and the limit in force keeps refusing', async () => {
    gateway = await startGateway({
      store: store(),
      limits: { accounts: { acct_3: { 'account-read': { limit: 12, shadow: true } } } },
    });
    expect(admitted(await send(25))).toBe(20);
    expect(await shadowDenied()).toBe('8');
  });

  it('may be below the cost of an operation, and reports each of its requests', async () => {
    gateway = await startGateway({
      store: store(),
      limits: { accounts: { acct_3: { 'account-read': { limit: 1, shadow: true } } } },
    });
    const sent = [1, 2].map(() => gateway.send('GET', '/v3/reports', { token: 'lonely' }));
    expect((await Promise.all(sent)).map(({ status }) => status)).toEqual([200, 200]);
    expect(await shadowDenied()).toBe('2');
  });

  it('clients see the limit in force alone', async () => {
    gateway = await startGateway({
      store: store(),
      limits: { accounts: { acct_3: { 'account-read': { limit: 12, shadow: true } } } },
    });
    const [answer] = await send(1);
    expect(answer?.headers.get('RateLimit-Policy')).toBe(
      '"account-read";q=20;w=60, "account-write";q=20;w=60',
    );
    expect(answer === undefined ? null : remainingOf(answer)).toEqual({ 'account-read': 19 });
  });

  it('with a shadow default no limit is in force', async () => {
    gateway = await startGateway({
      store: store(),
      limits: {
        defaults: {
          'account-read': { limit: 12, shadow: true },
          'account-write': { limit: 12, shadow: true },
        },
      },
    });
    const answers = await send(15);
    expect(admitted(answers)).toBe(15);
    expect(await shadowDenied()).toBe('3');
    expect(answers[0]?.headers.has('RateLimit')).toBe(false);
    expect(answers[0]?.headers.has('RateLimit-Policy')).toBe(false);
  });
});

import { describe, expect, it, vi } from 'vitest';
import type { Usage } from '../../../src/admin/usage/owner-usage.ts';
import type { TestGateway } from '../../fixtures/gateway.ts';
import { leftOf, patientStore, startHolding } from '../../fixtures/held-decisions.ts';
import { linesOf } from '../../fixtures/log-lines.ts';

const SOON = { timeout: 30_000, interval: 100 };
const ACCOUNT = 'acct_3';

describe.each([
  ['memory', () => ({ kind: 'memory' })],
  ['Redis', patientStore],
])('a decision that a program holds, in %s', (_, newStore: () => Record<string, unknown>) => {
  it('costs what it has reserved, and less when it is settled', async () => {
    const { hold, settle, left } = await startHolding(newStore());
    const receipt = await hold(ACCOUNT, 4_000);
    expect(await left(ACCOUNT, 'tokens')).toBe(6_000);
    const settled = await settle(receipt, 812);
    expect(settled).toMatchObject({ settled: true, cost: 812 });
    expect([leftOf(settled, 'tokens'), leftOf(settled, 'calls')]).toEqual([9_188, 49]);
    expect(await left(ACCOUNT, 'tokens')).toBe(9_188);
  });

  it('costs more than it has reserved, above the limit if it must be', async () => {
    const { hold, settle, decide } = await startHolding(newStore());
    const receipt = await hold(ACCOUNT, 4_000);
    expect(leftOf(await settle(receipt, 9_000), 'tokens')).toBe(1_000);
    expect(leftOf(await settle(await hold(ACCOUNT, 1_000), 50_000), 'tokens')).toBe(0);
    expect(await decide({ account: ACCOUNT, hold: '60s' })).toMatchObject({ status: 429, receipt: null });
  });

  it('is settled once, however often and however fast it is sent', async () => {
    const { gateway, hold, settle, post, left } = await startHolding(newStore());
    const receipt = await hold(ACCOUNT, 4_000);
    const sent = await Promise.all(Array.from({ length: 20 }, (_, cost) => settle(receipt, cost + 100)));
    const applied = sent.filter(({ settled }) => settled);
    expect(applied).toHaveLength(1);
    expect(sent.filter(({ reason }) => reason === 'already')).toHaveLength(19);
    expect(await left(ACCOUNT, 'tokens')).toBe(10_000 - (applied[0]?.cost ?? 0));
    const second = await hold(ACCOUNT, 10);
    const { answer } = await post({
      settlements: [
        { receipt: second, cost: 1 },
        { receipt: second, cost: 2 },
      ],
    });
    expect(answer.settlements.map(({ settled }) => settled)).toEqual([true, false]);
    const metrics = await gateway.metrics();
    for (const [event, count] of [
      ['issued', 2],
      ['settled', 2],
      ['already', 20],
    ])
      expect(metrics).toContain(`weir_receipts_total{event="${event}"} ${count}`);
  });

  it('costs nothing if it is cancelled, in limits that count requests too', async () => {
    const { hold, settle, left } = await startHolding(newStore());
    const receipt = await hold(ACCOUNT, 4_000);
    expect(await settle(receipt, 0)).toMatchObject({ settled: true, cost: 0 });
    expect([await left(ACCOUNT, 'tokens'), await left(ACCOUNT, 'calls')]).toEqual([10_000, 50]);
  });

  it('is reported to operators by what it has cost, once the next one is made', async () => {
    const { gateway, hold, settle } = await startHolding(newStore(), { notifications: { log: true } });
    const noticed = () =>
      linesOf(gateway, 'limit.reached').map(({ bucket, percent, used }) => ({ bucket, percent, used }));
    await settle(await hold(ACCOUNT, 9_000), 812);
    await settle(await hold(ACCOUNT, 9_000), 8_000);
    expect(noticed()).toEqual([]);
    await hold(ACCOUNT, 1_000);
    await expect.poll(noticed, SOON).toEqual([{ bucket: 'tokens', percent: 80, used: 8_812 }]);
  });

  it('is a request in flight until it is settled', async () => {
    const { decide, hold, settle } = await startHolding(newStore());
    const receipts = [await hold(ACCOUNT, 1), await hold(ACCOUNT, 1)];
    expect(await decide({ account: ACCOUNT, hold: '60s' })).toMatchObject({
      status: 429,
      receipt: null,
      problem: { extensions: { bucket: 'in-flight' } },
    });
    expect((await decide({ account: ACCOUNT })).status).toBe(200);
    await settle(receipts[0] ?? '', 1);
    await hold(ACCOUNT, 1);
    expect((await decide({ account: ACCOUNT, hold: '60s' })).status).toBe(429);
  });

  it.each([
    ['beside others', undefined],
    ['and no other limit counted it', ['tried-tokens', 'tried-in-flight']],
  ])('changes nothing in a shadow limit that had no room for it, %s', async (_, limits) => {
    const { gateway, hold, settle } = await startHolding(newStore());
    const used = async () => {
      const response = await fetch(`${gateway.adminUrl}/usage/accounts/${ACCOUNT}`);
      const { buckets } = (await response.json()) as Usage;
      return ['tried-tokens', 'tried-in-flight'].map((name) => {
        const found = buckets.find(({ bucket }) => bucket === name);
        return found?.inFlight ?? found?.used;
      });
    };
    // Redis frees the slots of both in the same ten seconds.
    const held = { hold: '10m', ...(limits && { limits }) };
    await hold(ACCOUNT, 4_000, held);
    expect(await used()).toEqual([4_000, 1]);
    for (const cost of [0, 812, 4_000]) {
      const receipt = await hold(ACCOUNT, 3_000, held);
      expect(await settle(receipt, cost)).toMatchObject({ settled: true, cost });
      expect(await used()).toEqual([4_000, 1]);
      expect(await settle(receipt, cost)).toMatchObject({ settled: false, reason: 'already' });
    }
    const settled = linesOf(gateway, 'settlement').map((line) => line.settled);
    expect(settled).toEqual([0, 812, 4_000]);
  });

  it('that nobody settles costs what it has reserved, and frees its slots when its hold ends', async () => {
    const { decide, hold, settle, left } = await startHolding(newStore());
    const held = { hold: '2s' };
    const receipts = [await hold(ACCOUNT, 700, held), await hold(ACCOUNT, 300, held)];
    await vi.waitFor(async () => {
      expect((await decide({ account: ACCOUNT, hold: '60s', cost: 1 })).status).toBe(200);
    }, SOON);
    expect(await settle(receipts[0] ?? '', 1)).toMatchObject({ settled: false, reason: 'ended', cost: 700 });
    expect(await left(ACCOUNT, 'tokens')).toBe(8_999);
  });

  it('is settled beside wrong ones of its batch', async () => {
    const { hold, post, left } = await startHolding(newStore());
    const [first, second] = [await hold(ACCOUNT, 500), await hold(ACCOUNT, 500)];
    const { status, answer } = await post({
      settlements: [
        { receipt: first, cost: 100 },
        { receipt: 'nonsense', cost: 100 },
        { receipt: second, cost: -1 },
        7,
        { receipt: second, cost: 200 },
      ],
    });
    expect(status).toBe(200);
    const invalid = (field: string) => ({
      settled: false,
      reason: 'invalid',
      problem: { status: 422, errors: [{ field }] },
    });
    expect(answer.settlements).toMatchObject([
      { settled: true, cost: 100 },
      invalid('receipt'),
      invalid('cost'),
      invalid('body'),
      { settled: true, cost: 200 },
    ]);
    expect(await left(ACCOUNT, 'tokens')).toBe(9_700);
  });

  it('is shown among the requests in flight, by no replica', async () => {
    const { gateway, hold, settle } = await startHolding(newStore());
    const receipts = [await hold(ACCOUNT, 1), await hold(ACCOUNT, 1, { hold: '5m' })];
    const read = async () => {
      const response = await fetch(`${gateway.adminUrl}/usage/accounts/${ACCOUNT}`);
      const { buckets } = (await response.json()) as { buckets: readonly { bucket: string }[] };
      return buckets.find(({ bucket }) => bucket === 'in-flight');
    };
    const byPrograms = (inFlight: number) => ({
      inFlight,
      byReplica: [{ replica: 'programs', name: 'held by programs', inFlight }],
    });
    expect(await read()).toMatchObject(byPrograms(2));
    await settle(receipts[1] ?? '', 1);
    expect(await read()).toMatchObject(byPrograms(1));
    await settle(receipts[0] ?? '', 1);
    expect(await read()).toMatchObject({ inFlight: 0, byReplica: [] });
  });

  it('is counted once, by what it has cost in the end', async () => {
    const { gateway, decide, settle } = await startHolding(newStore());
    const question = { account: ACCOUNT, cost: 4_000, hold: '60s' };
    const settled = await decide(question);
    await settle(settled.receipt ?? '', 812);
    await settle(settled.receipt ?? '', 900);
    const cancelled = await decide(question);
    await settle(cancelled.receipt ?? '', 0);
    const ended = await decide({ ...question, cost: 300, hold: '1s', limits: ['tokens'] });
    await vi.waitFor(() => expect(linesOf(gateway, 'settlement')).toHaveLength(3), SOON);
    const line = { operation: 'listThings', account: ACCOUNT, kind: 'read' };
    expect(linesOf(gateway, 'settlement')).toMatchObject([
      { ...line, requestId: settled.requestId, cost: 4_000, settled: 812, outcome: 'settled' },
      { ...line, requestId: cancelled.requestId, cost: 4_000, settled: 0, outcome: 'settled' },
      { ...line, requestId: ended.requestId, cost: 300, settled: 300, outcome: 'ended', limits: ['tokens'] },
    ]);
    expect(linesOf(gateway, 'request')).toMatchObject([
      { requestId: settled.requestId, cost: 4_000, heldMs: 60_000 },
      { requestId: cancelled.requestId, cost: 4_000, heldMs: 60_000 },
      { requestId: ended.requestId, cost: 300, heldMs: 1_000 },
    ]);
    expect(await pointsAt(gateway)).toEqual({ requests: 3, points: 1_112, charged: 1_112 });
  });
});

/** What a replica has counted of the Account, and of all points. */
async function pointsAt({ adminUrl, metrics }: Pick<TestGateway, 'adminUrl' | 'metrics'>) {
  const response = await fetch(`${adminUrl}/usage/accounts/${ACCOUNT}`);
  const { recent } = (await response.json()) as Usage;
  const { requests, points } = recent?.['10m'] ?? {};
  const [, charged] = /weir_points_charged_total\{kind="read"\} (\d+)/.exec(await metrics()) ?? [];
  return { requests, points, charged: Number(charged) };
}

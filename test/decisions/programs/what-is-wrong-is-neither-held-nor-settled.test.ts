import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Holding, openHolding, patientStore, startHolding } from '../../fixtures/held-decisions.ts';

const ACCOUNT = 'acct_3';

/** A replica that counts in its memory. */
let alone: Holding;
beforeAll(async () => {
  alone = await openHolding({ kind: 'memory' });
});
afterAll(() => alone.gateway.close());

describe('what cannot be held', () => {
  it.each([
    ['', 'hold'],
    ['60', 'hold'],
    ['0s', 'hold'],
    ['-5s', 'hold'],
    ['1.5s', 'hold'],
    ['500ms', 'hold'],
    ['11m', 'hold'],
    ['601s', 'hold'],
    ['1h', 'hold'],
    [' 60s', 'hold'],
    ['60s60s60s60s60s60s', 'hold'],
    [60, 'hold'],
    [null, 'hold'],
    [{}, 'hold'],
  ])('hold: %j is a 422, and nothing is charged', async (hold, field) => {
    const { decide, left } = alone;
    expect((await decide({ account: ACCOUNT, cost: 5, hold })).errors?.[0]?.field).toBe(field);
    expect(await left(ACCOUNT, 'tokens')).toBe(10_000);
  });

  it('a peek is a 422', async () => {
    const { decide } = alone;
    const { errors } = await decide({ account: ACCOUNT, hold: '60s', peek: true });
    expect(errors).toEqual([{ field: 'hold', message: 'cannot be asked for with peek' }]);
  });

  it('a request that is refused has no receipt, and neither has a decision that was not to be held', async () => {
    const { decide } = alone;
    expect(await decide({ token: 'nobody', hold: '60s' })).toMatchObject({ status: 401, receipt: null });
    expect(await decide({ account: ACCOUNT, limits: ['tokens'], cost: 1 })).not.toHaveProperty('receipt');
    expect(await decide({ account: ACCOUNT, limits: ['in-flight'] })).toMatchObject({
      status: 422,
      problem: { errors: [{ message: expect.stringContaining('needs a hold') }] },
    });
  });
});

describe('what cannot be settled', () => {
  it.each([
    ['{', 400, undefined],
    ['null', 422, 'body'],
    ['[]', 422, 'body'],
    ['{}', 422, 'body'],
    [{ receipt: 'x' }, 422, 'body'],
    [{ cost: 1 }, 422, 'body'],
    [{ receipt: '', cost: 1 }, 422, 'receipt'],
    [{ receipt: 7, cost: 1 }, 422, 'receipt'],
    [{ receipt: 'x'.repeat(32_769), cost: 1 }, 422, 'receipt'],
    [{ receipt: 'x', cost: '1' }, 422, 'cost'],
    [{ receipt: 'x', cost: 0.5 }, 422, 'cost'],
    [{ receipt: 'x', cost: -1 }, 422, 'cost'],
    [{ receipt: 'x', cost: 2_000_000_001 }, 422, 'cost'],
    [{ receipt: 'x', cost: 1, account: 'acct_1' }, 422, 'account'],
    [{ receipt: 'x', cost: 1, 'a/b~c': 1 }, 422, 'a/b~c'],
    [{ receipt: 'x', cost: 1 }, 422, 'receipt'],
    [{ receipt: 'nicht/base64+', cost: 1 }, 422, 'receipt'],
    [{ settlements: [] }, 422, 'settlements'],
    [{ settlements: {} }, 422, 'settlements'],
    [{ settlements: [], receipt: 'x' }, 422, 'settlements'],
    [{ settlements: Array(101).fill({ receipt: 'x', cost: 1 }) }, 422, 'settlements'],
    ['{"receipt":"x","cost":1,"cost":2}', 400, undefined],
  ])('%j', async (body, status, field) => {
    const { post } = alone;
    const { answer, ...rest } = await post(body);
    expect([rest.status, answer.errors?.[0]?.field]).toEqual([status, field]);
  });

  it('anything but POST, and more than a megabyte', async () => {
    const { gateway, post } = alone;
    const got = await fetch(`${gateway.decisionsUrl}/settle`);
    expect([got.status, got.headers.get('allow')]).toEqual([405, 'POST']);
    expect((await post({ receipt: 'x'.repeat(1_100_000), cost: 1 })).status).toBe(413);
  });

  it('a receipt whose bytes were changed, wherever they were', async () => {
    const { hold, post, settle } = alone;
    const receipt = await hold(ACCOUNT, 4_000);
    const bytes = Buffer.from(receipt, 'base64url');
    for (const place of [0, 7, 15, 16, 17, 18, 40, 80, bytes.length - 1]) {
      const changed = Buffer.from(bytes);
      changed[place] = (changed[place] ?? 0) ^ 1;
      const { status } = await post({ receipt: changed.toString('base64url'), cost: 1 });
      expect([place, status]).toEqual([place, 422]);
    }
    expect((await post({ receipt: receipt.slice(0, -4), cost: 1 })).status).toBe(422);
    for (const added of ['AAAA', 'x', '=', ' '])
      expect([added, (await post({ receipt: receipt + added, cost: 1 })).status]).toEqual([added, 422]);
    expect(await settle(receipt, 0)).toMatchObject({ settled: true });
  });

  it('a receipt of another fleet', async () => {
    const { hold } = await startHolding(patientStore());
    const receipt = await hold(ACCOUNT, 4_000);
    for (const other of [await startHolding(patientStore()), alone]) {
      const { status, answer } = await other.post({ receipt, cost: 1 });
      expect([status, answer.errors]).toEqual([422, [{ field: 'receipt', message: 'was not issued here' }]]);
    }
  });
});

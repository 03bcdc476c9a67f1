import { expect, test } from 'vitest';
import { AttemptsUnderWay } from '../../src/deliveries/under-way.ts';

const DELIVERY = {
  deliveryId: 'dlv_1',
  subscriptionId: 'sub_1',
  owner: 'acct_1',
  eventId: 'evt_1',
  payload: {},
  url: 'https://example.com/',
  secrets: [],
  isProbe: false,
  isFailing: false,
  failures: 0,
};

/** Runs so many attempts at once. */
async function run(underWay: AttemptsUnderWay, count: number, isDelivered: boolean): Promise<void> {
  for (let i = 0; i < count; i++) underWay.add(DELIVERY, Promise.resolve(isDelivered), () => {});
  expect([underWay.total, underWay.of('sub_1'), underWay.of('acct_1')]).toEqual([count, count, count]);
  await underWay.ended();
  expect([underWay.total, underWay.of('sub_1'), underWay.of('acct_1')]).toEqual([0, 0, 0]);
}

test('a window begins at one, grows by one with each success, and is halved by a failure', async () => {
  const underWay = new AttemptsUnderWay();
  const windows = [underWay.windowOf('sub_1')];
  for (const [count, isDelivered] of [
    [1, true],
    [2, true],
    [4, true],
    [1, false],
    [8, false],
  ] as const) {
    await run(underWay, count, isDelivered);
    windows.push(underWay.windowOf('sub_1'));
  }
  expect(windows).toEqual([1, 2, 4, 8, 4, 1]);
});

test('attempts of failing subscriptions are counted until they end', async () => {
  const underWay = new AttemptsUnderWay();
  for (const isFailing of [true, false, true])
    underWay.add({ ...DELIVERY, isFailing }, Promise.resolve(false), () => {});
  expect(underWay.ofFailing).toBe(2);
  await underWay.ended();
  expect(underWay.ofFailing).toBe(0);
});

test('a window is kept while its subscription waits', async () => {
  const underWay = new AttemptsUnderWay();
  await run(underWay, 1, true);
  underWay.keepWindows([{ id: 'sub_1' }]);
  expect(underWay.windowOf('sub_1')).toBe(2);
  underWay.keepWindows([]);
  expect(underWay.windowOf('sub_1')).toBe(1);
});

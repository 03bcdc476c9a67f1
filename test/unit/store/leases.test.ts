import { expect, it, onTestFinished, vi } from 'vitest';
import { pace } from '../../../src/domain/pace.ts';
import { Hold } from '../../../src/store/in-flight/held-slots.ts';
import { Leases } from '../../../src/store/in-flight/leases.ts';
import type { Renewal } from '../../../src/store/in-flight/renewals.ts';
import type { Charge } from '../../../src/store/store.ts';

const SLOTS = { key: 'k', limit: 3, windowSeconds: 0, counts: 'concurrent' } as const;

/** Of a store that takes what it gets, and answers nothing. */
function leasesThat(store: Partial<ConstructorParameters<typeof Leases>[0]>): Leases {
  const leases = new Leases({ groupOf: () => 0, tagOf: () => 'slots', send() {}, renew() {}, ...store });
  onTestFinished(() => leases.close());
  return leases;
}

const charge = () => ({ buckets: [SLOTS], cost: 1, hold: new Hold() });

const ADMITTED = {
  outcome: 'admitted' as const,
  buckets: [{ remaining: 2, resetAfterUs: 0, retryAfterUs: 0 }],
  chargedAtUs: 0,
};

function open(leases: Leases, charges: readonly Charge[]) {
  const call = leases.open(charges, 0);
  if (call === undefined) throw new Error('nothing was stated');
  return call;
}

/** To a renewal without statements, or whose leases are nowhere yet. */
function answerOf(wasAlive: boolean | undefined) {
  return wasAlive === undefined ? undefined : { wasAlive, places: [] };
}

/** Whose renewals are answered as `wasAlive` says, at the end of each period, and what they have stated. */
function renewed(wasAlive: () => boolean | undefined) {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const waiting: Renewal[] = [];
  const leases = leasesThat({ renew: (renewal) => waiting.push(renewal) });
  const statedWithin = (ms: number) => {
    const stated: Renewal['stated'][number][] = [];
    for (let passedMs = 0; passedMs < ms; passedMs += pace.renewalMs) {
      vi.advanceTimersByTime(pace.renewalMs);
      for (const renewal of waiting.splice(0)) {
        stated.push(...renewal.stated);
        leases.renewed(renewal, answerOf(wasAlive()));
      }
    }
    return stated;
  };
  return { leases, statedWithin };
}

it('a statement that fails at once waits for the next renewal, and is not stated again and again', () => {
  let calls = 0;
  const leases = leasesThat({
    send: () => {
      for (let call = leases.open([], 0); call !== undefined; call = leases.open([], 0)) {
        calls += 1;
        if (calls > 10) throw new Error('it does not end');
        leases.lost(call);
      }
    },
  });
  leases.take({ buckets: [SLOTS], cost: 1, hold: new Hold() });
  leases.flush();
  expect(calls).toBe(1);
  leases.flush();
  expect(calls).toBe(1);
  expect(leases.of('k')).toBe(1);
});

it('after a release whose call is lost, the next charge of the owner states what is held anew', () => {
  const leases = leasesThat({});
  const first = charge();
  const taken = open(leases, [first]);
  leases.answered([first], taken, [ADMITTED]);
  first.hold.end();
  const released = open(leases, []);
  expect(released.stated).toMatchObject([{ ended: 1, held: 0 }]);
  leases.lost(released);
  const [next] = open(leases, [charge()]).asked;
  expect(next?.held).toBe(0);
  expect(next?.generation).toBeGreaterThan(taken.asked[0]?.generation ?? Number.NaN);
});

it('a release whose call is lost is stated within a second, and until the store answers, although no further charge comes', () => {
  let wasAlive: boolean | undefined;
  const { leases, statedWithin } = renewed(() => wasAlive);
  const last = charge();
  leases.answered([last], open(leases, [last]), [ADMITTED]);
  last.hold.end();
  const released = open(leases, []);
  leases.lost(released);
  const stated = statedWithin(pace.renewalMs);
  expect(stated).toMatchObject([{ lease: { key: 'k' }, held: 0 }]);
  expect(stated[0]?.generation).toBeGreaterThan(released.stated[0]?.generation ?? Number.NaN);
  statedWithin(3 * pace.statementsMs);
  wasAlive = true;
  expect(statedWithin(pace.renewalMs)).toMatchObject([{ lease: { key: 'k' }, held: 0 }]);
  // Then nothing is left to state.
  statedWithin(3 * pace.statementsMs);
  expect(vi.getTimerCount()).toBe(0);
});

it('a charge whose call is lost is stated within a second, although the next charge is refused', () => {
  const { leases, statedWithin } = renewed(() => true);
  const [first, next] = [charge(), charge()];
  const calls = [first, next].map((one) => open(leases, [one]));
  if (calls[0] === undefined || calls[1] === undefined) throw new Error('there is no call');
  leases.lost(calls[0]);
  leases.answered([next], calls[1], [{ outcome: 'denied', buckets: [undefined] }]);
  expect(statedWithin(pace.renewalMs)).toMatchObject([{ lease: { key: 'k' }, held: 0 }]);
});

it('a call that is lost when the leases are closed starts no timer', () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const leases = leasesThat({});
  const last = charge();
  leases.answered([last], open(leases, [last]), [ADMITTED]);
  last.hold.end();
  const released = open(leases, []);
  leases.close();
  vi.advanceTimersByTime(pace.renewalMs);
  leases.lost(released);
  expect(vi.getTimerCount()).toBe(0);
});

it('a lease without slots is kept for the next request of its owner among two thousand, and keeps nothing alive', () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const renewals: Renewal[] = [];
  const leases = leasesThat({ renew: (renewal) => renewals.push(renewal) });
  const requestOf = (owner: number) => {
    const one = { ...charge(), buckets: [{ ...SLOTS, key: `${owner}` }] };
    const call = open(leases, [one]);
    leases.answered([one], call, [ADMITTED]);
    one.hold.end();
    open(leases, []);
    return call.asked[0]?.lease;
  };
  const first = requestOf(0);
  for (let owner = 1; owner < 1_000; owner++) requestOf(owner);
  expect(requestOf(0)).toBe(first);
  vi.advanceTimersByTime(3 * pace.renewalMs);
  expect(renewals).toEqual([]);
  for (let owner = 1_000; owner < 5_000; owner++) requestOf(owner);
  const later = requestOf(0);
  expect(later).not.toBe(first);
  // Redis may be another one, with an earlier count.
  leases.renew();
  expect(requestOf(0)).not.toBe(later);
  vi.advanceTimersByTime(3 * pace.statementsMs);
  expect(vi.getTimerCount()).toBe(0);
});

it('a lease is stated at the place that the last answer names', () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const renewals: Renewal[] = [];
  const leases = leasesThat({ renew: (renewal) => renewals.push(renewal) });
  leases.take(charge());
  open(leases, []);
  const places: number[] = [];
  for (const answer of [{ wasAlive: true, places: [67] }, undefined, { wasAlive: true, places: [34] }]) {
    leases.renew();
    vi.advanceTimersByTime(pace.renewalMs);
    const renewal = renewals.splice(0).find(({ stated }) => stated.length > 0);
    if (renewal === undefined) throw new Error('nothing was stated');
    leases.renewed(renewal, answer);
    places.push(renewal.stated[0]?.lease.place ?? 0);
  }
  expect(places).toEqual([67, 67, 34]);
});

it('leases are stated in turn, apart from the charges, and with them while charges are in progress', () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const renewals: Renewal[] = [];
  const leases = leasesThat({ renew: (renewal) => renewals.push(renewal) });
  const keys = Array.from({ length: 300 }, (_, index) => `p:1:{a}:x.slots:${index}`);
  for (const key of keys) leases.take({ buckets: [{ ...SLOTS, key }], cost: 1, hold: new Hold() });
  for (let call = leases.open([], 0); call !== undefined; call = leases.open([], 0));
  const busy = leases.open([{ buckets: [{ ...SLOTS, key: keys[0] ?? '' }], cost: 1, hold: new Hold() }], 0);
  const stated = new Set<string>();
  let most = 0;
  for (let passedMs = 0; passedMs < 1.1 * pace.statementsMs; passedMs += pace.renewalMs) {
    vi.advanceTimersByTime(pace.renewalMs);
    expect(renewals.length).toBeGreaterThanOrEqual(1);
    most = Math.max(most, ...renewals.map((renewal) => renewal.stated.length));
    for (const renewal of renewals.splice(0)) {
      expect(renewal.aliveKey).toBe('p:1:{slots}:alive');
      for (const { lease } of renewal.stated) stated.add(lease.key);
      leases.renewed(renewal, answerOf(true));
    }
  }
  expect(keys.filter((key) => !stated.has(key))).toEqual([busy?.asked[0]?.lease.key]);
  expect(most).toBeLessThan(keys.length / 4);
});

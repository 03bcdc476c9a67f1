import fc from 'fast-check';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { calendarOf } from '../../../src/domain/limits/calendar.ts';
import { Generations } from '../../../src/store/generations.ts';
import { Hold } from '../../../src/store/in-flight/held-slots.ts';
import { MemoryStore } from '../../../src/store/memory-store.ts';
import { ShareStore } from '../../../src/store/share-store.ts';
import type { Charge, Decision, Settlement, Store } from '../../../src/store/store.ts';
import { generatedCases } from '../../fixtures/generated-cases.ts';

const SECOND_US = 1_000_000;

/** A store that answers, or does not, as the test says. */
class Switched implements Store {
  isAway = false;
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  charge(charge: Charge) {
    return this.isAway ? ({ outcome: 'uncounted', reason: 'deadline' } as const) : this.#store.charge(charge);
  }

  async peek(charge: Charge): Promise<Decision> {
    return this.isAway ? { outcome: 'uncounted', reason: 'deadline' } : this.#store.peek(charge);
  }

  settle(settlement: Settlement) {
    return this.#store.settle(settlement);
  }

  get slots() {
    return this.#store.slots;
  }

  close(): Promise<void> {
    return this.#store.close();
  }
}

function open(replicas = 4) {
  const clock = { us: 0 };
  const fleet = { replicas };
  const remote = new Switched(new MemoryStore(() => clock.us));
  const store = new ShareStore(
    remote,
    () => fleet.replicas,
    () => clock.us,
  );
  return { clock, fleet, remote, store };
}

type Changes = Partial<{ key: string; limit: number; windowSeconds: number; cost: number; shadow: boolean }>;

function chargeOf({ cost = 1, ...bucket }: Changes = {}): Charge {
  return { buckets: [{ key: 'k', limit: 100, windowSeconds: 1, ...bucket }], cost };
}

/** How many of these charges may pass, counted or not. */
async function passed(store: Store, times: number, charge: Charge): Promise<number> {
  let count = 0;
  for (let sent = 0; sent < times; sent++) if ((await store.charge(charge)).outcome !== 'denied') count += 1;
  return count;
}

describe('while the store does not answer', () => {
  it('each replica admits its part of the limit, and refuses the rest as long as its own counts say', async () => {
    const { store, remote } = open();
    remote.isAway = true;
    expect(await store.charge(chargeOf())).toEqual({ outcome: 'uncounted', reason: 'deadline' });
    expect(await passed(store, 100, chargeOf())).toBe(24);
    expect(await store.charge(chargeOf())).toEqual({
      outcome: 'denied',
      degraded: 'deadline',
      buckets: [{ remaining: 0, resetAfterUs: SECOND_US, retryAfterUs: SECOND_US }],
    });
  });

  it.each([
    { limit: 3, cost: 1, replicas: 4, requests: 1 },
    { limit: 20, cost: 10, replicas: 4, requests: 1 },
    { limit: 10, cost: 1, replicas: 4, requests: 2 },
    { limit: 10, cost: 1, replicas: 1, requests: 10 },
    { limit: 1, cost: 1, replicas: 1_000, requests: 1 },
    { limit: 10, cost: 10, replicas: 5, requests: 1 },
    { limit: 10, cost: 11, replicas: 5, requests: 0 },
  ])(
    'a part is rounded down, and never below the cost of one request that fits the limit: $limit points of $replicas',
    async ({ requests, replicas, ...charge }) => {
      const { store, remote } = open(replicas);
      remote.isAway = true;
      expect(await passed(store, 30, chargeOf(charge))).toBe(requests);
    },
  );

  it('a limit of requests is divided as well', async () => {
    const { store, remote } = open(2);
    remote.isAway = true;
    const charge: Charge = {
      buckets: [{ key: 'k', limit: 6, windowSeconds: 1, counts: 'requests' }],
      cost: 10,
    };
    expect(await passed(store, 20, charge)).toBe(3);
  });

  it('a part of a limit on requests in flight is compared with all that this replica has in flight', async () => {
    const { store, remote } = open(2);
    const take = async () => {
      const hold = new Hold();
      const slots = { key: 'k', limit: 6, windowSeconds: 0, counts: 'concurrent' } as const;
      const { outcome } = await store.charge({ buckets: [slots], cost: 1, hold });
      return { outcome, hold };
    };
    const counted = [await take(), await take()];
    expect(counted.map(({ outcome }) => outcome)).toEqual(['admitted', 'admitted']);
    remote.isAway = true;
    const third = await take();
    expect([third.outcome, (await take()).outcome]).toEqual(['uncounted', 'denied']);
    counted[0]?.hold.end();
    expect([(await take()).outcome, (await take()).outcome]).toEqual(['uncounted', 'denied']);
    for (const { hold } of [third, ...counted.slice(1)]) hold.end();
    expect(store.slots.of('k')).toBe(1);
  });

  it('all buckets have room, or nothing is spent; a shadow bucket refuses nothing', async () => {
    const { store, remote } = open(2);
    remote.isAway = true;
    const bucket = (key: string, limit: number, shadow = false) => ({ key, limit, windowSeconds: 1, shadow });
    const both: Charge = { buckets: [bucket('wide', 20), bucket('narrow', 4)], cost: 1 };
    expect(await passed(store, 20, both)).toBe(2);
    expect(await passed(store, 20, { buckets: [bucket('wide', 20)], cost: 1 })).toBe(8);
    const tried: Charge = { buckets: [bucket('free', 20), bucket('tried', 2, true)], cost: 1 };
    expect(await passed(store, 20, tried)).toBe(10);
  });

  it('a changed number of replicas changes the parts at once', async () => {
    const { store, remote, fleet } = open(4);
    remote.isAway = true;
    expect(await passed(store, 100, chargeOf())).toBe(25);
    fleet.replicas = 2;
    expect(await passed(store, 100, chargeOf())).toBe(25);
    fleet.replicas = 5;
    expect(await passed(store, 100, chargeOf())).toBe(0);
  });

  it('a peek has the result of a charge, and spends nothing', async () => {
    const { store, remote } = open();
    remote.isAway = true;
    for (let asked = 0; asked < 100; asked++)
      expect(await store.peek(chargeOf())).toEqual({ outcome: 'uncounted', reason: 'deadline' });
    await passed(store, 25, chargeOf());
    const peeked = await store.peek(chargeOf());
    expect(peeked).toMatchObject({ outcome: 'denied', degraded: 'deadline' });
    expect(peeked).toEqual(await store.charge(chargeOf()));
  });

  it('what no store can decide is not decided here either', async () => {
    const { store, remote } = open();
    remote.isAway = true;
    expect(await store.charge({ buckets: [], cost: 1 })).toEqual({
      outcome: 'uncounted',
      reason: 'deadline',
    });
    expect(await passed(store, 50, chargeOf({ limit: 3_000_000_000, windowSeconds: 9e9 }))).toBe(50);
  });
});

describe('when the store answers again', () => {
  it('its decisions are passed on as they are, whatever was counted here', async () => {
    const { store, remote } = open();
    remote.isAway = true;
    await passed(store, 50, chargeOf());
    remote.isAway = false;
    expect(await passed(store, 200, chargeOf())).toBe(100);
    expect((await store.charge(chargeOf())).outcome).toBe('denied');
    expect(await store.charge(chargeOf())).not.toHaveProperty('degraded');
  });

  it('counts of an outage hold until their window has passed, so that a second outage gives no second part', async () => {
    const { store, remote, clock } = open();
    const month = { limit: 100, windowSeconds: 30 * 24 * 3600 };
    remote.isAway = true;
    expect(await passed(store, 100, chargeOf(month))).toBe(25);
    for (let outage = 0; outage < 10; outage++) {
      remote.isAway = false;
      await store.charge(chargeOf({ key: 'other' }));
      clock.us += 60 * SECOND_US;
      remote.isAway = true;
      expect(await passed(store, 100, chargeOf(month))).toBe(0);
    }
    clock.us += month.windowSeconds * SECOND_US;
    remote.isAway = false;
    await store.charge(chargeOf({ key: 'other' }));
    remote.isAway = true;
    expect(await passed(store, 100, chargeOf(month))).toBe(25);
  });

  it('counts of a period hold until it has ended, and the logs of windows are dropped before that', async () => {
    const { store, remote, clock } = open();
    const calendar = calendarOf({ unit: 'month', timeZone: 'UTC', startsOn: 1 });
    const month = { key: 'month', limit: 100, windowSeconds: 31 * 24 * 3600, calendar };
    clock.us = Date.UTC(2026, 0, 20) * 1_000;
    const endUs = Date.UTC(2026, 1, 1) * 1_000;
    const cleared = vi.spyOn(Generations.prototype, 'clear');
    onTestFinished(() => cleared.mockRestore());
    const both: Charge = { buckets: [...chargeOf().buckets, month], cost: 1 };
    const outageOf = async (charge: Charge) => {
      remote.isAway = true;
      const admitted = await passed(store, 100, charge);
      remote.isAway = false;
      await store.charge(chargeOf({ key: 'other' }));
      return admitted;
    };
    expect(await outageOf(both)).toBe(25);
    expect(cleared).not.toHaveBeenCalled();
    clock.us += SECOND_US;
    await store.charge(chargeOf({ key: 'other' }));
    expect(cleared).toHaveBeenCalledTimes(1);
    clock.us = endUs - 1;
    expect(await outageOf({ buckets: [month], cost: 1 })).toBe(0);
    expect(cleared).toHaveBeenCalledTimes(1);
    // For 15 minutes, a clock that is set back may need them.
    clock.us = endUs + 900 * SECOND_US - 1;
    await store.charge(chargeOf({ key: 'other' }));
    expect(cleared).toHaveBeenCalledTimes(1);
    clock.us += 1;
    await store.charge(chargeOf({ key: 'other' }));
    expect(cleared).toHaveBeenCalledTimes(2);
    expect(cleared.mock.contexts.map((one) => (one as Generations<unknown>).isEmpty)).toEqual([true, true]);
    expect(await outageOf({ buckets: [month], cost: 1 })).toBe(25);
  });

  it('a store that fails and returns at random admits at most the limit and the part in any window', async () => {
    const step = fc.record({ waitMs: fc.integer({ min: 0, max: 300 }), toggles: fc.boolean() });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 50, maxLength: 300 }), async (steps) => {
        const admittedUs = await admittedIn(steps);
        for (const startUs of admittedUs) {
          const inside = admittedUs.filter((us) => us >= startUs && us < startUs + SECOND_US);
          expect(inside.length).toBeLessThanOrEqual(8 + 2);
        }
      }),
      { numRuns: generatedCases(50) },
    );
  });
});

/** When the first of four replicas admitted requests. Three requests came at each step, with a limit of 8. */
async function admittedIn(
  steps: readonly { readonly waitMs: number; readonly toggles: boolean }[],
): Promise<readonly number[]> {
  const { store, remote, clock } = open(4);
  const admittedUs: number[] = [];
  for (const { waitMs, toggles } of steps) {
    clock.us += waitMs * 1_000;
    if (toggles) remote.isAway = !remote.isAway;
    const admitted = await passed(store, 3, chargeOf({ limit: 8 }));
    for (let index = 0; index < admitted; index++) admittedUs.push(clock.us);
  }
  return admittedUs;
}

describe('a flood of made-up owners', () => {
  it('does not free an owner who floods, and holds a bounded number of buckets', async () => {
    const { store, remote, clock } = open();
    remote.isAway = true;
    const flooded = chargeOf({ key: 'flood', limit: 400, windowSeconds: 60 });
    let admitted = 0;
    for (let id = 0; id < 100_000; id++) {
      clock.us += 100;
      await store.charge(chargeOf({ key: `k${id}`, windowSeconds: 60 }));
      if (id % 100 === 0) admitted += await passed(store, 1, flooded);
    }
    expect(admitted).toBe(100);
    // A bucket that was dropped has its whole part again: those charged last are kept, the first are not.
    const leftOf = async (key: string) => passed(store, 30, chargeOf({ key, windowSeconds: 60 }));
    expect(await leftOf('k99999')).toBe(24);
    expect(await leftOf('k1')).toBe(25);
  });
});

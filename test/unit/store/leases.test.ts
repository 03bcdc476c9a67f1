import { expect, it, onTestFinished } from 'vitest';
import { Hold } from '../../../src/store/in-flight/held-slots.ts';
import { Leases } from '../../../src/store/in-flight/leases.ts';

const SLOTS = { key: 'k', limit: 3, windowSeconds: 0, counts: 'concurrent' } as const;

it('a statement that fails at once waits for the next renewal, and is not stated again and again', () => {
  let calls = 0;
  const leases = new Leases(
    () => 0,
    () => {
      for (let call = leases.open([], 0); call !== undefined; call = leases.open([], 0)) {
        calls += 1;
        if (calls > 10) throw new Error('it does not end');
        leases.lost(call);
      }
    },
  );
  onTestFinished(() => leases.close());
  leases.take({ buckets: [SLOTS], cost: 1, hold: new Hold() });
  leases.flush();
  expect(calls).toBe(1);
  leases.renew();
  leases.flush();
  expect(calls).toBe(2);
  expect(leases.of('k')).toBe(1);
});

it('after a release whose call is lost, the next charge of the owner states what is held anew', () => {
  const leases = new Leases(
    () => 0,
    () => {},
  );
  onTestFinished(() => leases.close());
  const admitted = {
    outcome: 'admitted' as const,
    buckets: [{ remaining: 2, resetAfterUs: 0, retryAfterUs: 0 }],
  };
  const charge = () => ({ buckets: [SLOTS], cost: 1, hold: new Hold() });
  const open = (charges: readonly ReturnType<typeof charge>[]) => {
    const call = leases.open(charges, 0);
    if (call === undefined) throw new Error('nothing was stated');
    return call;
  };
  const first = charge();
  const taken = open([first]);
  leases.answered([first], taken, [admitted]);
  first.hold.end();
  const released = open([]);
  expect(released.stated).toMatchObject([{ ended: 1, held: 0 }]);
  leases.lost(released);
  const [next] = open([charge()]).asked;
  expect(next?.held).toBe(0);
  expect(next?.generation).toBeGreaterThan(taken.asked[0]?.generation ?? Number.NaN);
});

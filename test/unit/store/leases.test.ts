import { expect, it, onTestFinished } from 'vitest';
import { Hold } from '../../../src/store/in-flight/hold.ts';
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

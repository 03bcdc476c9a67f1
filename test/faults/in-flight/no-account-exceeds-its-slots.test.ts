import { expect, it, onTestFinished } from 'vitest';
import { type Fault, FREE_WITHIN_MS, LIMIT, Rig } from './rig.ts';

/** `npm run test:in-flight` sends 200,000, with every fault. */
const LONG = process.env.WEIR_TEST_IN_FLIGHT_REQUESTS;
const REQUESTS = Number(LONG ?? 1_500);

/** What has no exception in the README: a gateway that is killed, or that stands still for less than its lease. */
const BRIEF_FAULTS: readonly Fault[] = ['kill', 'pause'];

it('three gateways never let an Account have more than its limit in flight, and no slot leaks', {
  timeout: 7_200_000,
}, async () => {
  const rig = await Rig.start();
  onTestFinished(() => rig.close());
  const result = await rig.run({
    requests: REQUESTS,
    ...(LONG === undefined ? { everyMs: 1_000, faults: BRIEF_FAULTS } : { everyMs: 5_000 }),
    progress: (sent) => console.log(`${sent} of ${REQUESTS} requests sent`),
  });
  if (LONG !== undefined) console.log(JSON.stringify(result, null, 1));
  expect(result.excesses).toEqual([]);
  expect(result.freeAfterMs).toBeLessThan(FREE_WITHIN_MS);
  // As much as the limit allows, so that there was something to exceed.
  expect(result.most).toBe(LIMIT);
  expect(result.outcomes['429']).toBeGreaterThan(0);
  expect(result.faults.kill).toBeGreaterThan(0);
});

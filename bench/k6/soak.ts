/**
 * Hours at 500 requests a second, against the replicas of `bench/soak`: most Accounts stay below their limits, one sends
 * five times its own, and ten of one Organization send almost twice the Organization's.
 */
import exec from 'k6/execution';
import http from 'k6/http';
import type { Options } from 'k6/options';
import { SECONDS, send } from './gateway.ts';

export { handleSummary } from './summary.ts';

http.setResponseCallback(http.expectedStatuses(200, 429));

export const options: Options = {
  scenarios: {
    soak: {
      executor: 'constant-arrival-rate',
      rate: 500,
      duration: `${SECONDS}s`,
      preAllocatedVUs: 500,
      maxVUs: 2000,
    },
  },
  // The runner judges the checks: where a replica was killed, the requests that it had begun may fail.
  thresholds: { dropped_iterations: ['rate<0.5'] },
};

const [QUIET_ACCOUNTS, HOT_ACCOUNT, FIRST_OF_HOT_ORGANIZATION] = [80, 91, 81];

/** Of five requests in turn, three are from a quiet Account, one from the hot one and one from the hot Organization. */
export default function soak(): void {
  const turn = exec.scenario.iterationInTest;
  const round = Math.floor(turn / 5);
  const account =
    turn % 5 < 3
      ? ((round * 3 + (turn % 5)) % QUIET_ACCOUNTS) + 1
      : turn % 5 === 3
        ? HOT_ACCOUNT
        : FIRST_OF_HOT_ORGANIZATION + (round % 10);
  send({ account });
}

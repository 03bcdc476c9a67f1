/**
 * Redis is killed after a third of the run and back after two (the runner does both): every request is served, those
 * in between say that they were not counted, and the last ones are counted again.
 */

import { check } from 'k6';
import exec from 'k6/execution';
import type { Options } from 'k6/options';
import { ACCOUNTS, degraded, header, SECONDS, send } from './gateway.ts';

export { handleSummary } from './summary.ts';

/** By then the gateway must have found Redis again: it probes once a second at most. */
const BACK = 0.8;

export const options: Options = {
  scenarios: {
    'redis-down': {
      executor: 'constant-arrival-rate',
      rate: 200,
      duration: `${SECONDS}s`,
      preAllocatedVUs: 50,
      maxVUs: 200,
    },
  },
  thresholds: {
    checks: ['rate==1'],
    dropped_iterations: ['count==0'],
    http_req_failed: ['rate==0'],
    [degraded.name]: ['count>0'],
  },
};

export default function redisDown(): void {
  const response = send({ account: (exec.scenario.iterationInTest % ACCOUNTS) + 1 });
  if (exec.scenario.progress < BACK) return;
  check(response, { 'is counted again': (answer) => header(answer, 'Ratelimit') !== undefined });
}

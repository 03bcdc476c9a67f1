/** Ten Accounts of one Organization, each within its own limit, all together at twice the Organization's. */

import { check } from 'k6';
import exec from 'k6/execution';
import type { Options } from 'k6/options';
import { LIMIT, SECONDS, send } from './gateway.ts';

export { handleSummary } from './summary.ts';

/** Points per second and Organization, as the gateway was configured. */
const ORGANIZATION_LIMIT = Number(__ENV.ORGANIZATION_LIMIT ?? 4 * LIMIT);
const ACCOUNTS_OF_ONE = 10;

export const options: Options = {
  scenarios: {
    'hot-org': {
      executor: 'constant-arrival-rate',
      rate: 2 * ORGANIZATION_LIMIT,
      duration: `${SECONDS}s`,
      preAllocatedVUs: 300,
      maxVUs: 600,
    },
  },
  thresholds: { checks: ['rate==1'], dropped_iterations: ['count==0'], refused: ['count>0'] },
};

export default function hotOrganization(): void {
  const response = send({ account: (exec.scenario.iterationInTest % ACCOUNTS_OF_ONE) + 1 });
  if (response.status !== 429) return;
  check(response, {
    'the Organization refused': (refusal) => refusal.json('extensions.bucket') === 'organization-read',
  });
}

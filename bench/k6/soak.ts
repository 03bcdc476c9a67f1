/** Hours at a moderate rate (SECONDS=7200): nothing grows, nothing drifts. Look at the gateway's memory beside it. */
import exec from 'k6/execution';
import type { Options } from 'k6/options';
import { ACCOUNTS, SECONDS, send } from './gateway.ts';

export { handleSummary } from './summary.ts';

export const options: Options = {
  scenarios: {
    soak: {
      executor: 'constant-arrival-rate',
      rate: 200,
      duration: `${SECONDS}s`,
      preAllocatedVUs: 50,
      maxVUs: 200,
    },
  },
  thresholds: { checks: ['rate==1'], dropped_iterations: ['count==0'], http_req_failed: ['rate==0'] },
};

export default function soak(): void {
  send({ account: (exec.scenario.iterationInTest % ACCOUNTS) + 1 });
}

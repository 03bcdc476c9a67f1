/** A constant rate well below every limit: nothing is refused, nothing is late, no request is left out. */
import exec from 'k6/execution';
import type { Options } from 'k6/options';
import { ACCOUNTS, SECONDS, send } from './gateway.ts';

export { handleSummary } from './summary.ts';

export const options: Options = {
  scenarios: {
    steady: {
      executor: 'constant-arrival-rate',
      rate: 500,
      duration: `${SECONDS}s`,
      preAllocatedVUs: 300,
      maxVUs: 600,
    },
  },
  thresholds: {
    checks: ['rate==1'],
    dropped_iterations: ['count==0'],
    refused: ['count==0'],
    http_req_failed: ['rate==0'],
    http_req_duration: ['p(99)<100'],
  },
};

export default function steady(): void {
  send({ account: (exec.scenario.iterationInTest % ACCOUNTS) + 1 });
}

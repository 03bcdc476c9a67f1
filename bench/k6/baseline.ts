/** The upstream alone: what the other figures are to be read against. */
import { check } from 'k6';
import http from 'k6/http';
import type { Options } from 'k6/options';
import { SECONDS } from './gateway.ts';

export { handleSummary } from './summary.ts';

const UPSTREAM = __ENV.UPSTREAM ?? 'http://127.0.0.1:3000';

export const options: Options = {
  scenarios: {
    baseline: {
      executor: 'constant-arrival-rate',
      rate: 500,
      duration: `${SECONDS}s`,
      preAllocatedVUs: 50,
      maxVUs: 200,
    },
  },
  thresholds: { checks: ['rate==1'], dropped_iterations: ['count==0'] },
};

export default function baseline(): void {
  const response = http.get(`${UPSTREAM}/v3/payments/payees`);
  check(response, { 'is a 200': ({ status }) => status === 200 });
}

/** Rates that rise and fall faster than windows slide, partly above the limit. */
import exec from 'k6/execution';
import type { Options } from 'k6/options';
import { ACCOUNTS, SECONDS, send } from './gateway.ts';

export { handleSummary } from './summary.ts';

const STEP = `${Math.ceil(SECONDS / 6)}s`;

export const options: Options = {
  scenarios: {
    burst: {
      executor: 'ramping-arrival-rate',
      startRate: 50,
      preAllocatedVUs: 300,
      maxVUs: 600,
      stages: [
        { target: 50, duration: STEP },
        { target: 1000, duration: '1s' },
        { target: 1000, duration: STEP },
        { target: 50, duration: '1s' },
        { target: 50, duration: STEP },
        { target: 1000, duration: STEP },
      ],
    },
  },
  thresholds: { checks: ['rate==1'], dropped_iterations: ['count==0'] },
};

export default function burst(): void {
  send({ account: (exec.scenario.iterationInTest % ACCOUNTS) + 1 });
}

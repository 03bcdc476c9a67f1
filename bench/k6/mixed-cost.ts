/** Writes of 1, 5 and 10 points beside each other, together above the limit. */
import exec from 'k6/execution';
import type { Options } from 'k6/options';
import { LIMIT, SECONDS, type Sent, send } from './gateway.ts';

export { handleSummary } from './summary.ts';

const WRITES: readonly Omit<Sent, 'account'>[] = [
  { path: '/v3/payments/payables/payable_1/open', cost: 1 },
  { path: '/v3/compliance/tax-forms/form_1/submit', cost: 5 },
  { path: '/v3/platform/sessions', cost: 10 },
];
const MEAN_COST = 16 / 3;

export const options: Options = {
  scenarios: {
    'mixed-cost': {
      executor: 'constant-arrival-rate',
      rate: Math.ceil((3 * LIMIT) / MEAN_COST),
      duration: `${SECONDS}s`,
      preAllocatedVUs: 50,
      maxVUs: 200,
    },
  },
  thresholds: { checks: ['rate==1'], dropped_iterations: ['count==0'], refused: ['count>0'] },
};

export default function mixedCost(): void {
  const turn = exec.scenario.iterationInTest % WRITES.length;
  send({ account: 1, method: 'POST', ...WRITES[turn] });
}

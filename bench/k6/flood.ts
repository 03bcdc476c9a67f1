/** One Account at ten times its limit: 429s at once, and never a point too many. */
import type { Options } from 'k6/options';
import { LIMIT, SECONDS, send } from './gateway.ts';

export { handleSummary } from './summary.ts';

export const options: Options = {
  scenarios: {
    flood: {
      executor: 'constant-arrival-rate',
      rate: 10 * LIMIT,
      duration: `${SECONDS}s`,
      preAllocatedVUs: 300,
      maxVUs: 600,
    },
  },
  thresholds: { checks: ['rate==1'], dropped_iterations: ['count==0'], refused: ['count>0'] },
};

export default function flood(): void {
  send({ account: 1 });
}

import { Type } from 'typebox';
import { section } from './section.ts';

const seconds = (description: string, fallback: number) =>
  Type.Integer({ description, default: fallback, minimum: 0, maximum: 3600 });

/** What SIGTERM sets off. */
export const shutdownSchema = section('What happens after SIGTERM.', {
  drainDelaySeconds: seconds(
    'How long requests are still taken, with `Connection: close`, while readiness says no.',
    5,
  ),
  graceSeconds: seconds('How long requests under way may then take.', 30),
});

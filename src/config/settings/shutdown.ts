import { Type } from 'typebox';
import { section } from './section.ts';

const seconds = (description: string, fallback: number) =>
  Type.Integer({ description, default: fallback, minimum: 0, maximum: 3600 });

/** Shutdown after SIGTERM. */
export const shutdownSchema = section('Shutdown after SIGTERM.', {
  drainDelaySeconds: seconds(
    'How long new requests are still accepted, with `Connection: close`, while `/readyz` answers 503.',
    5,
  ),
  graceSeconds: seconds('How long requests in progress may then take to finish.', 30),
});

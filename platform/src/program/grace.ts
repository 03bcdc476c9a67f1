import { setTimeout } from 'node:timers/promises';

/** How long a stop waits for what is under way. */
export const GRACE_MS = 3000;

/** Resolves when the work has ended, or after the grace period. Rejects if the work fails before. */
export async function waitBriefly(work: Promise<unknown>): Promise<void> {
  await Promise.race([work, setTimeout(GRACE_MS, undefined, { ref: false })]);
}

/** How long a stop waits for what is under way. */
export const GRACE_MS = 3000;

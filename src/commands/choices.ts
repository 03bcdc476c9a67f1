/** Values of command-line options. They are apart from the commands because `--help` does not load any. */
import { REMEMBERED_MS } from '../identity/revocation-message.ts';
import type { Retries } from '../replay/replay.ts';

/** The forms in which `weir operations` prints the price list. */
export const FORMATS = ['table', 'markdown', 'json'] as const;

/** What `weir replay` may assume of refused clients. */
export const RETRIES: readonly Retries[] = ['none', 'drop', 'after'];

const MS_PER_HOUR = 3_600_000;

/** Default lifetime of a revocation by `weir revoke`. */
export const REMEMBERED_HOURS = String(REMEMBERED_MS / MS_PER_HOUR);

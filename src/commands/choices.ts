/** Values of command-line options. They are apart from the commands because `--help` does not load any. */
import { REMEMBERED_MS } from '../identity/revocation-message.ts';
import type { Retries } from '../replay/replay.ts';

/** What every command reads unless `--config` names another file. */
export const SETTINGS_FILE = 'weir.yaml';

/** Help of `--config` in commands that ask an admin port. */
export const GATEWAY_CONFIG = `process settings of a gateway on this machine; default without --url: ${SETTINGS_FILE}`;

/** The forms in which `weir operations` prints the price list. */
export const FORMATS = ['table', 'markdown', 'json'] as const;

/** What `weir replay` may assume of refused clients. */
export const RETRIES: readonly Retries[] = ['none', 'drop', 'after'];

const MS_PER_HOUR = 3_600_000;

/** Default lifetime of a revocation by `weir revoke`. */
export const REMEMBERED_HOURS = String(REMEMBERED_MS / MS_PER_HOUR);

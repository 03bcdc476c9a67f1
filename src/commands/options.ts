/** Options that several commands have, and values of options. They are apart from the commands because `--help` does not load any. */
import { type Command, InvalidArgumentError } from 'commander';
import { REMEMBERED_MS } from '../facts/revocation-message.ts';
import type { Retries } from '../replay/replay.ts';

/** An id that is not empty. */
export function parseId(text: string): string {
  if (text.trim() !== '') return text;
  throw new InvalidArgumentError('It is empty.');
}

/** What a command is about. */
export const ID_ARGUMENT = ['<id>', 'such as acct_1', parseId] as const;

/** What every command reads unless `--config` names another file. */
export const SETTINGS_FILE = 'weir.yaml';

export function withSettings(command: Command, description = 'process settings'): Command {
  return command.option('-c, --config <file>', description, SETTINGS_FILE);
}

/** Adds the options of a command that asks an admin port. */
export function withGateway(command: Command): Command {
  return command
    .option(
      '-c, --config <file>',
      `process settings of a gateway on this machine; default without --url: ${SETTINGS_FILE}`,
    )
    .option(
      '--url <url>',
      'admin port of any replica, such as http://127.0.0.1:9090; WEIR_ADMIN_TOKEN has its token',
    )
    .option('--ca <file>', 'authority of an https admin port, in PEM');
}

/** The forms in which `weir operations` prints the operations. */
export const FORMATS = ['table', 'markdown', 'json'] as const;

/** What `weir replay` may assume of refused clients. */
export const RETRIES: readonly Retries[] = ['none', 'drop', 'after'];

const MS_PER_HOUR = 3_600_000;

/** Default lifetime of a revocation by `weir revoke`. */
export const REMEMBERED_HOURS = String(REMEMBERED_MS / MS_PER_HOUR);

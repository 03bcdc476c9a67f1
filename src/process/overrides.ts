import { type Command, InvalidArgumentError } from 'commander';

/** Settings that can be given on the command line, as the text that their variables take. */
export interface SettingOverrides {
  readonly port?: string;
  readonly adminPort?: string;
  readonly upstream?: string;
}

/** Adds the options of these settings to a command. */
export function withOverrides(command: Command, upstream: string): Command {
  return command
    .option('-p, --port <port>', 'port for clients, instead of listen.port', readPort)
    .option('--admin-port <port>', 'port for operators, instead of admin.port', readPort)
    .option('--upstream <url>', upstream, readUrl);
}

/** The environment with the variables of the settings that were given. */
export function environmentWith(
  { port, adminPort, upstream }: SettingOverrides,
  env: NodeJS.ProcessEnv,
): NodeJS.ProcessEnv {
  return {
    ...env,
    ...(port !== undefined && { WEIR_PORT: port }),
    ...(adminPort !== undefined && { WEIR_ADMIN_PORT: adminPort }),
    ...(upstream !== undefined && { WEIR_UPSTREAM_URL: upstream }),
  };
}

function readPort(text: string): string {
  if (text === 'off' || (/^\d{1,5}$/.test(text) && Number(text) <= 65_535)) return text;
  throw new InvalidArgumentError('It must be a whole number from 0 to 65535.');
}

/** An http:// or https:// URL without credentials, which are never sent, and without a query, which upstream.url cannot have. */
export function readUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isPlain = url?.username === '' && url.password === '' && !/[?#]/.test(text);
  if (/^https?:\/\//.test(text) && isPlain) return text;
  throw new InvalidArgumentError(
    'It must be an http:// or https:// URL, without a user name, a password or a query.',
  );
}

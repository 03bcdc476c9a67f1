import { loadSettings } from '../config/load.ts';
import { readText } from '../config/reader/read-text.ts';
import { CommandError } from './failure.ts';

/** Where a gateway's admin port is, from the command line. */
export interface AdminOptions {
  /** weir.yaml, which has the address and the token. */
  readonly config?: string;
  /** The admin port of any replica; its token is in WEIR_ADMIN_TOKEN. */
  readonly url?: string;
}

interface AdminPort {
  readonly url: string;
  readonly token: string | undefined;
}

/** Longer than the store's deadline and any directory's. */
const TIMEOUT_MS = 15_000;

/** What a path of the admin port answers. Throws a CommandError that says what to do where it is not a 200. */
export async function askAdmin(
  options: AdminOptions,
  path: string,
  { method = 'GET', body }: { readonly method?: 'GET' | 'PUT' | 'DELETE'; readonly body?: object } = {},
): Promise<unknown> {
  const { url, token } = adminPortOf(options);
  const headers = {
    ...(token === undefined ? {} : { Authorization: `Bearer ${token}` }),
    ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
  };
  let response: Response;
  try {
    response = await fetch(url + path, {
      method,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      headers,
      signal: AbortSignal.timeout(TIMEOUT_MS),
      redirect: 'error',
    });
  } catch (error) {
    throw new CommandError(
      `${url} does not answer: ${reasonOf(error)}. Is it the admin port of a running gateway?`,
    );
  }
  const answer: unknown = await response.json().catch(() => undefined);
  if (response.ok && answer !== undefined) return answer;
  const { error } = (answer ?? {}) as { readonly error?: unknown };
  throw new CommandError(
    `${url} answered ${response.status}${typeof error === 'string' ? `: ${error}` : '.'}`,
  );
}

function adminPortOf({ config, url }: AdminOptions): AdminPort {
  if (url !== undefined) {
    if (!URL.canParse(url)) throw new CommandError('--url takes a URL, such as http://127.0.0.1:9090.');
    return { url: url.replace(/\/+$/, ''), token: process.env.WEIR_ADMIN_TOKEN || undefined };
  }
  if (config === undefined) throw new CommandError('Name a gateway with --url or with --config.');
  const { host, port, token, tokenFile } = loadSettings(config, process.env).admin;
  const fileToken =
    tokenFile === undefined ? undefined : readText(tokenFile, 'admin.tokenFile names it').trim();
  return { url: `http://${reachable(host)}:${port}`, token: token ?? fileToken };
}

/** An address to connect to: a gateway that listens on every address is reached on this machine. */
function reachable(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1';
  if (host === '::') return '[::1]';
  return host.includes(':') ? `[${host}]` : host;
}

function reasonOf(error: unknown): string {
  const { cause, message } = error as Error & { readonly cause?: NodeJS.ErrnoException };
  return cause?.code ?? cause?.message ?? message;
}

import { X509Certificate } from 'node:crypto';
import { existsSync } from 'node:fs';
import { request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { json } from 'node:stream/consumers';
import type { ConnectionOptions } from 'node:tls';
import { loadSettings } from '../config/load.ts';
import { readText } from '../config/reader/read-text.ts';
import { readTokenFile } from '../config/settings/port-token.ts';
import type { Settings } from '../config/settings/settings.ts';
import { roundedDuration } from '../domain/duration.ts';
import { hostInUrl } from '../domain/network.ts';
import { CommandError } from '../process/failure.ts';
import { SETTINGS_FILE } from './options.ts';
import { printError } from './print.ts';

/** Where a gateway's admin port is, from the command line. */
export interface AdminOptions {
  /** weir.yaml, which has the address and the token. Default: the one in this folder, where there is no `url`. */
  readonly config?: string;
  /** The admin port of any replica; its token is in WEIR_ADMIN_TOKEN, or in the file of WEIR_ADMIN_TOKEN_FILE. */
  readonly url?: string;
  /** Authority of an https admin port, instead of the authorities of the system. */
  readonly ca?: string;
}

interface AdminPort {
  readonly url: string;
  readonly token: string | undefined;
  readonly tls: ConnectionOptions;
}

interface Answer {
  readonly status: number;
  /** Undefined if the body is not JSON. */
  readonly body: unknown;
  /** How old what it lists is. */
  readonly ageSeconds: number;
}

/** The admin port refused a request. */
export class AdminRefusal extends CommandError {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** Twice the time between two readings of the store. Older lists are reported as out of date. */
const OLD_SECONDS = 10;

const NO_GATEWAY = `Name a gateway with --url or with --config: there is no ${SETTINGS_FILE} in this folder.`;

const NAME_ADMIN_PORT = 'Name the admin port: admin.port of weir.yaml, 9090 by default.';

/** Longer than the store's deadline and any directory's. */
const TIMEOUT_MS = 15_000;

/** What a path of the admin port answers. Throws a CommandError that says what to do where it is not a 200. */
export async function askAdmin(
  options: AdminOptions,
  path: string,
  { method = 'GET', body }: { readonly method?: 'GET' | 'PUT' | 'DELETE'; readonly body?: object } = {},
): Promise<unknown> {
  const port = adminPortOf(options);
  const text = body === undefined ? undefined : JSON.stringify(body);
  let answer: Answer;
  try {
    answer = await send(port, path, method, text);
  } catch (error) {
    throw new CommandError(
      `${port.url} does not answer: ${reasonOf(error)}. Is it the admin port of a running gateway?`,
    );
  }
  if (answer.ageSeconds > OLD_SECONDS) {
    printError(
      `Changes of the last ${roundedDuration(answer.ageSeconds)} are unknown: ${port.url} could not read Redis.`,
    );
  }
  if (answer.status === 200 && answer.body !== undefined) return answer.body;
  const { error, requestId } = (answer.body ?? {}) as {
    readonly error?: unknown;
    readonly requestId?: unknown;
  };
  if (requestId !== undefined)
    throw new CommandError(`${port.url} is a port for clients. ${NAME_ADMIN_PORT}`);
  throw new AdminRefusal(
    answer.status,
    `${port.url} answered ${answer.status}${typeof error === 'string' ? `: ${error.replaceAll('\n', '; ')}` : '.'}`,
  );
}

/** `weir health`: fails unless the gateway is alive. */
export async function health(options: AdminOptions): Promise<void> {
  await askAdmin(options, '/livez');
}

function send({ url, token, tls }: AdminPort, path: string, method: string, body?: string): Promise<Answer> {
  const headers = {
    ...(token === undefined ? {} : { Authorization: `Bearer ${token}` }),
    ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
  };
  const request = url.startsWith('https:') ? requestHttps : requestHttp;
  return new Promise((resolve, reject) => {
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    const outgoing = request(url + path, { ...tls, method, headers, agent: false, signal }, (response) => {
      const { statusCode: status = 0, headers: received } = response;
      const ageSeconds = Number(received.age ?? 0);
      json(response).then(
        (read) => resolve({ status, ageSeconds, body: read }),
        () => resolve({ status, ageSeconds, body: undefined }),
      );
    });
    outgoing.on('error', reject).end(body);
  });
}

function adminPortOf({ config, url, ca }: AdminOptions): AdminPort {
  const given = ca === undefined ? undefined : { ca: readText(ca, '--ca names it') };
  if (url !== undefined) return portAt(url, given);
  if (config === undefined && !existsSync(SETTINGS_FILE)) throw new CommandError(NO_GATEWAY);
  return portOf(loadSettings(config ?? SETTINGS_FILE, process.env).admin, given);
}

function portAt(url: string, tls: ConnectionOptions = {}): AdminPort {
  if (!/^https?:\/\//.test(url) || !URL.canParse(url))
    throw new CommandError('--url takes a URL, such as http://127.0.0.1:9090.');
  return { url: url.replace(/(?<!\/)\/+$/, ''), token: tokenOfEnvironment(), tls };
}

function tokenOfEnvironment(): string | undefined {
  const { WEIR_ADMIN_TOKEN: token, WEIR_ADMIN_TOKEN_FILE: file } = process.env;
  if (token) return token;
  return file ? readTokenFile(file, 'WEIR_ADMIN_TOKEN_FILE') : undefined;
}

function portOf(
  { host, port, tls, token, tokenFile }: Settings['admin'],
  given: ConnectionOptions | undefined,
): AdminPort {
  const fileToken = tokenFile === undefined ? undefined : readTokenFile(tokenFile, 'admin.tokenFile');
  return {
    url: `${tls === undefined ? 'http' : 'https'}://${reachable(host)}:${port}`,
    token: token ?? fileToken,
    tls: given ?? (tls === undefined ? {} : onlyCertificate(tls.certFile)),
  };
}

/** Accepts exactly the certificate in this file, whatever name it is for: the certificate of the gateway on this machine. */
function onlyCertificate(certFile: string): ConnectionOptions {
  const { raw } = new X509Certificate(readText(certFile, 'admin.tls.certFile names it'));
  const pem = `-----BEGIN CERTIFICATE-----\n${raw.toString('base64')}\n-----END CERTIFICATE-----\n`;
  return { ca: pem, allowPartialTrustChain: true, checkServerIdentity: () => undefined };
}

/** An address to connect to: a gateway that listens on every address is reached on this machine. */
function reachable(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1';
  if (host === '::') return '[::1]';
  return hostInUrl(host);
}

function reasonOf(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  if (message === 'socket hang up') return 'it closed the connection, as an https port does with http';
  return code ?? message;
}

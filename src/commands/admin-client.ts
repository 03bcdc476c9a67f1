import { X509Certificate } from 'node:crypto';
import { existsSync } from 'node:fs';
import { request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { text as readAll } from 'node:stream/consumers';
import type { ConnectionOptions } from 'node:tls';
import { loadSettings, readSettings } from '../config/load.ts';
import { ConfigError } from '../config/problem.ts';
import { readText } from '../config/reader/read-text.ts';
import { isMapping } from '../config/reader/schema-node.ts';
import { readTokenFile } from '../config/settings/port-token.ts';
import type { Settings } from '../config/settings/settings.ts';
import { roundedDuration } from '../domain/duration.ts';
import { hostInUrl } from '../domain/network.ts';
import { noTlsText } from '../domain/shown.ts';
import { parsed } from '../facts/message-bounds.ts';
import { CommandError } from '../process/failure.ts';
import { isAlive } from './admin-answers.ts';
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
  /** Where a token would be from, in words. */
  readonly tokenFrom: string;
  readonly tls: ConnectionOptions;
}

interface Answer {
  readonly status: number;
  /** Undefined if the body is not JSON. */
  readonly body: unknown;
  /** How old what it lists is. */
  readonly ageSeconds: number;
  /** Whether it has the headers that every guarded answer of the admin port has. */
  readonly isGuarded: boolean;
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

/** Node's codes for a certificate whose authority is unknown. */
const UNKNOWN_AUTHORITY = /^(UNABLE_TO_VERIFY|UNABLE_TO_GET_ISSUER|SELF_SIGNED|DEPTH_ZERO_SELF_SIGNED)/;

/** What a header may have, by RFC 9110 section 5.5, without the spaces that end a token. */
const FIELD_TEXT = /^[\x21-\x7e\x80-\xff]+$/;

/**
 * What a path of the admin port answers. Throws a CommandError that says what to do where it is not a 200, or not what an admin port
 * answers.
 */
export async function askAdmin(
  options: AdminOptions,
  path: string,
  isAnswer: (body: unknown) => boolean,
  { method = 'GET', body }: { readonly method?: 'GET' | 'PUT' | 'DELETE'; readonly body?: object } = {},
): Promise<unknown> {
  return askPort(adminPortOf(options), path, isAnswer, method, body);
}

async function askPort(
  port: AdminPort,
  path: string,
  isAnswer: (body: unknown) => boolean,
  method: string,
  body?: object,
): Promise<unknown> {
  const text = body === undefined ? undefined : JSON.stringify(body);
  let answer: Answer;
  try {
    answer = await send(port, path, method, text);
  } catch (error) {
    throw new CommandError(`${port.url} ${reasonOf(error)}. Is it the admin port of a running gateway?`);
  }
  if (answer.status !== 200) throw refusalOf(port, answer);
  if (!isAnswer(answer.body) || (isEmpty(answer.body) && !answer.isGuarded)) throw notAdmin(port);
  if (answer.ageSeconds > OLD_SECONDS) {
    printError(
      `Changes of the last ${roundedDuration(answer.ageSeconds)} are unknown: ${port.url} could not read Redis.`,
    );
  }
  return answer.body;
}

/** An empty list may be anybody's. */
function isEmpty(body: unknown): boolean {
  return Array.isArray(body) && body.length === 0;
}

function refusalOf(port: AdminPort, { status, body }: Answer): CommandError {
  const { error, requestId } = isMapping(body) ? body : {};
  if (requestId !== undefined)
    return new CommandError(`${port.url} is a port for clients. ${NAME_ADMIN_PORT}`);
  // A proxy before the admin port answers 5xx in a form of its own.
  if (typeof error !== 'string' && status < 500) return notAdmin(port);
  const reason = typeof error === 'string' ? `: ${error.replaceAll('\n', '; ')}` : '.';
  const hint = status === 401 ? ` ${tokenHint(port)}` : '';
  return new AdminRefusal(status, `${port.url} answered ${status}${reason}${hint}`);
}

function tokenHint({ token, tokenFrom }: AdminPort): string {
  return token === undefined ? `No token was sent: set ${tokenFrom}.` : `The token came from ${tokenFrom}.`;
}

function notAdmin({ url }: AdminPort): CommandError {
  return new CommandError(
    `${url} answered, but not as an admin port of Weir does. Is it the address of the admin port?`,
  );
}

/** `weir health`: fails unless the gateway is alive. */
export async function health(options: AdminOptions): Promise<void> {
  await askPort(livePortOf(options), '/livez', isAlive, 'GET');
}

/**
 * The port of a gateway whose files may have been replaced by invalid ones since it started: it is alive with those it has. Nothing secret
 * is sent to it, so any certificate will do unless `--ca` says which.
 */
function livePortOf(options: AdminOptions): AdminPort {
  const { config = SETTINGS_FILE, url, ca } = options;
  if (url !== undefined || ca !== undefined || !existsSync(config)) return adminPortOf(options);
  const { valid, problems } = readSettings(config, process.env);
  if (valid.admin === undefined) throw new ConfigError(problems);
  return { url: urlOf(valid.admin), token: undefined, tokenFrom: '', tls: { rejectUnauthorized: false } };
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
      const isGuarded =
        received['cache-control'] === 'no-store' && received['x-content-type-options'] === 'nosniff';
      readAll(response).then(
        (read) => resolve({ status, ageSeconds, isGuarded, body: parsed(read) }),
        (error) => reject(signal.aborted ? signal.reason : error),
      );
    });
    outgoing.on('error', reject).end(body);
  });
}

function adminPortOf({ config, url, ca }: AdminOptions): AdminPort {
  const given = ca === undefined ? undefined : { ca: readText(ca, '--ca names it') };
  if (url !== undefined) return sendable(portAt(url, given));
  if (config === undefined && !existsSync(SETTINGS_FILE)) throw new CommandError(NO_GATEWAY);
  return sendable(portOf(loadSettings(config ?? SETTINGS_FILE, process.env).admin, given));
}

function sendable(port: AdminPort): AdminPort {
  const { token, tokenFrom } = port;
  if (token === undefined || FIELD_TEXT.test(token)) return port;
  throw new CommandError(
    `The token of ${tokenFrom} has a character that no header can have within a token, such as a space or a line end. Nothing was sent.`,
  );
}

function portAt(url: string, tls: ConnectionOptions = {}): AdminPort {
  if (!/^https?:\/\//.test(url) || !URL.canParse(url))
    throw new CommandError('--url takes a URL, such as http://127.0.0.1:9090.');
  return { url: url.replace(/(?<!\/)\/+$/, ''), ...tokenOfEnvironment(), tls };
}

function tokenOfEnvironment(): Pick<AdminPort, 'token' | 'tokenFrom'> {
  const { WEIR_ADMIN_TOKEN: token, WEIR_ADMIN_TOKEN_FILE: file } = process.env;
  if (token) return { token, tokenFrom: 'WEIR_ADMIN_TOKEN' };
  if (file)
    return { token: readTokenFile(file, 'WEIR_ADMIN_TOKEN_FILE'), tokenFrom: 'WEIR_ADMIN_TOKEN_FILE' };
  return { token: undefined, tokenFrom: 'WEIR_ADMIN_TOKEN or WEIR_ADMIN_TOKEN_FILE' };
}

function urlOf({ host, port, tls }: Settings['admin']): string {
  return `${tls === undefined ? 'http' : 'https'}://${reachable(host)}:${port}`;
}

function portOf(settings: Settings['admin'], given: ConnectionOptions | undefined): AdminPort {
  const { tls, token, tokenFile } = settings;
  // As in the gateway, a token in the settings comes before a file.
  const file = token === undefined ? tokenFile : undefined;
  return {
    url: urlOf(settings),
    token: file === undefined ? token : readTokenFile(file, 'admin.tokenFile'),
    tokenFrom: file === undefined ? 'WEIR_ADMIN_TOKEN or admin.token' : 'admin.tokenFile',
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

/** What an error of a request shows of the port, as the end of a sentence that begins with its URL. */
function reasonOf(error: unknown): string {
  const { name, code = '', message } = error as NodeJS.ErrnoException;
  if (name === 'AbortError' || name === 'TimeoutError')
    return `did not answer within ${TIMEOUT_MS / 1_000} s`;
  if (message === 'socket hang up')
    return 'does not answer: it closed the connection, as an https port does with http';
  const noTls = noTlsText(message);
  if (noTls !== undefined) return `does not answer: ${noTls}`;
  if (UNKNOWN_AUTHORITY.test(code))
    return `has a certificate that is not accepted (${message}): name its authority with --ca`;
  return `does not answer: ${code || message}`;
}

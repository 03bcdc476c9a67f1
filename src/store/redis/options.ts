import type { RedisOptions } from 'ioredis';
import { type TlsFiles, tlsOptions } from '../../domain/tls-files.ts';
import './protected-mode.ts';

/** ioredis types its constructors by `replyMapping`, which the scripts have no use for. */
type ConnectOptions = Omit<RedisOptions, 'replyMapping'>;

/** What every way of reaching Redis has in common; the words of weir.yaml. */
export interface RemoteSettings {
  readonly deadlineMs: number;
  readonly username?: string | undefined;
  readonly password?: string | undefined;
  readonly tls?: TlsFiles | undefined;
  /** RESP version, 3 unless told; a server that knows only 2 is spoken to in 2. */
  readonly protocol?: 2 | 3 | undefined;
}

/** A socket that owes an answer for this long is dead; so is an attempt to connect. */
const SILENCE_MS = 1000;

/**
 * Nothing is queued, resent or retried: a charge that cannot be sent now fails now, and one whose connection broke
 * may have been counted, so it must not be sent again.
 */
export function commonOptions(settings: RemoteSettings): ConnectOptions {
  return {
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    connectTimeout: SILENCE_MS,
    socketTimeout: SILENCE_MS,
    protocol: settings.protocol ?? 3,
    // Redis that is loading says so to each command, which tells more than a connection that is never ready.
    enableReadyCheck: false,
    disableClientInfo: true,
  };
}

/** Address, credentials and database of a `redis://` or `rediss://` URL. */
export function readUrl(url: string, defaultPort = 6379): ConnectOptions {
  const { protocol, hostname, port, username, password, pathname } = new URL(url);
  const database = Number(pathname.slice(1));
  return {
    host: hostname.replace(/^\[|\]$/g, ''),
    port: port === '' ? defaultPort : Number(port),
    ...(username === '' ? {} : { username: decodeURIComponent(username) }),
    ...(password === '' ? {} : { password: decodeURIComponent(password) }),
    ...(database > 0 ? { db: database } : {}),
    ...(protocol === 'rediss:' ? { tls: {} } : {}),
  };
}

/** The settings' own credentials and TLS, which go before those of a URL. */
export function accessOptions({ username, password, tls }: RemoteSettings): ConnectOptions {
  return {
    ...(username === undefined ? {} : { username }),
    ...(password === undefined ? {} : { password }),
    ...(tls === undefined ? {} : { tls: tlsOptions(tls) }),
  };
}

import type { RedisOptions } from 'ioredis';
import { type TlsFiles, tlsOptions } from '../../../domain/connections/tls-files.ts';
import { pace } from '../../../domain/pace.ts';
import './late-errors.ts';
import './protected-mode.ts';

/** ioredis's constructors are typed by `replyMapping`, which is not used here. */
type ConnectOptions = Omit<RedisOptions, 'replyMapping'>;

/** The `store` section of weir.yaml for a Redis of any topology. */
export type RemoteStoreSettings = (
  | { readonly kind: 'redis'; readonly url: string }
  | { readonly kind: 'sentinel'; readonly sentinels: readonly string[]; readonly name: string }
  | { readonly kind: 'cluster'; readonly nodes: readonly string[] }
) &
  AccessSettings;

interface AccessSettings {
  readonly deadlineMs: number;
  readonly username?: string | undefined;
  readonly password?: string | undefined;
  readonly tls?: TlsFiles | undefined;
  /** RESP version, 3 by default; a server without RESP3 gets RESP2. */
  readonly protocol?: 2 | 3 | undefined;
}

/**
 * Nothing is queued, resent or retried: a charge that cannot be sent now fails now, and one whose connection broke
 * may have been counted, so it must not be sent again.
 */
export function commonOptions(settings: AccessSettings): ConnectOptions {
  return {
    autoResendUnfulfilledCommands: false,
    // channel.ts subscribes. ioredis leaves the promise of its own attempt without a handler: a connection that broke
    // at that moment ended the process.
    autoResubscribe: false,
    maxRetriesPerRequest: 0,
    connectTimeout: pace.silenceMs,
    socketTimeout: pace.silenceMs,
    protocol: settings.protocol ?? 3,
    // While loading, Redis replies LOADING to each command, which is more helpful than a connection that is not ready.
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

/** Credentials and TLS from the settings, which take precedence over a URL's. */
export function accessOptions({ username, password, tls }: AccessSettings): ConnectOptions {
  return {
    ...(username === undefined ? {} : { username }),
    ...(password === undefined ? {} : { password }),
    ...(tls === undefined ? {} : { tls: tlsOptions(tls) }),
  };
}

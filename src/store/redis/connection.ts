import { Redis } from 'ioredis';
import type { StoreObserver } from '../observer.ts';
import type { UncountedReason } from '../store.ts';
import { reasonOf } from './failures.ts';
import { accessOptions, commonOptions, type RemoteSettings, readUrl } from './options.ts';
import { Reconnection } from './reconnection.ts';
import type { RedisClient } from './scripts.ts';
import { checkSettings } from './settings-check.ts';

export interface SingleSettings extends RemoteSettings {
  readonly kind: 'redis';
  readonly url: string;
}

export interface SentinelSettings extends RemoteSettings {
  readonly kind: 'sentinel';
  readonly sentinels: readonly string[];
  readonly name: string;
}

/** The connection to Redis, whatever its topology. Reconnects by itself for ever, and never queues a command. */
export interface RedisConnection {
  readonly client: RedisClient;
  /** Keys of one group may share a script call: all of them, or those of one Cluster slot. */
  groupOf(key: string): number;
  /** The server that a group's calls go to. */
  routeOf(group: number): string;
  /** Why a call of this group cannot be sent now. */
  problemOf(group: number): UncountedReason | undefined;
  /** Runs `send`. What it sends to one server leaves in one write. */
  inOneWrite(send: () => void): void;
  close(): void;
}

/** What a link reports to its store. */
export interface ConnectionEvents {
  /** A server can be called again. */
  ready(): void;
  /** A connection is gone, and with it what was known of the buckets behind it. */
  lost(): void;
}

/** For a server that closes the connection without an error of its own: ioredis does not call that a failure. */
const CLOSED_UNANSWERED =
  'the connection was closed before any answer: is this a Redis, and does it expect TLS where the settings have none?';

/** A Redis without TLS waits for the rest of what it takes for a command. */
const NO_HANDSHAKE = ': the port may not speak TLS, which the settings ask for';

const SENTINEL_PORT = 26_379;
const THE_ONLY_GROUP = 0;
const THE_ONLY_ROUTE = 'primary';

/** One Redis, or the primary that Sentinels name. */
export function openConnection(
  settings: SingleSettings | SentinelSettings,
  observer: StoreObserver,
  events: ConnectionEvents,
): RedisConnection {
  const reconnection = new Reconnection();
  const { nextDelayMs } = reconnection;
  const client =
    settings.kind === 'redis' ? connectSingle(settings, nextDelayMs) : connectSentinel(settings, nextDelayMs);
  return {
    client,
    groupOf: () => THE_ONLY_GROUP,
    routeOf: () => THE_ONLY_ROUTE,
    // Charges of one turn share a call, so there is one write already.
    inOneWrite: (send) => send(),
    ...watchConnection(client, reconnection, observer, events),
  };
}

/** Reports why the connection fails, and keeps it alive until it is closed. */
function watchConnection(
  client: Redis,
  reconnection: Reconnection,
  observer: StoreObserver,
  events: ConnectionEvents,
): Pick<RedisConnection, 'problemOf' | 'close'> {
  let problem: UncountedReason = 'disconnected';
  let state: 'unanswered' | 'failed' | 'answered' | 'closed' = 'unanswered';
  const become = (next: typeof state): void => {
    if (state !== 'closed') state = next;
  };
  const failed = (message: string, reason = reasonOf(message)): void => {
    if (state === 'closed') return;
    become('failed');
    problem = reason;
    observer.connectionFailed(reason, message);
  };
  const answered = (): void => {
    become('answered');
    problem = 'disconnected';
  };
  // An error that is none of the server's own is reported by the event `close`.
  const turnedAway = ({ message }: Error): void => {
    if (reasonOf(message) !== 'disconnected') failed(message);
  };
  client.on('connecting', () => become('unanswered'));
  client.on('error', ({ message }: Error) => {
    const isSilent = message === 'connect ETIMEDOUT' && client.options.tls !== undefined;
    failed(isSilent ? message + NO_HANDSHAKE : message, reasonOf(message));
  });
  client.on('ready', () => {
    reconnection.introduce(client).then(answered, turnedAway);
    void checkSettings(client, THE_ONLY_ROUTE, observer);
    events.ready();
  });
  client.on('close', () => {
    if (state === 'unanswered') failed(CLOSED_UNANSWERED, 'disconnected');
    events.lost();
  });
  const disconnect = reconnection.keepAlive(client);
  return {
    problemOf: () => (client.status === 'ready' ? undefined : problem),
    close() {
      become('closed');
      disconnect();
    },
  };
}

function connectSingle(settings: SingleSettings, retryStrategy: () => number): Redis {
  return new Redis({
    ...commonOptions(settings),
    ...readUrl(settings.url),
    ...accessOptions(settings),
    enableOfflineQueue: false,
    retryStrategy,
  });
}

function connectSentinel(settings: SentinelSettings, retryStrategy: () => number): Redis {
  const sentinels = settings.sentinels.map((url) => readUrl(url, SENTINEL_PORT));
  const [first] = sentinels;
  const access = accessOptions(settings);
  return new Redis({
    ...commonOptions(settings),
    ...access,
    sentinels: sentinels.map(({ host, port }) => ({ host: host ?? '', port: port ?? SENTINEL_PORT })),
    name: settings.name,
    ...(first?.username === undefined ? {} : { sentinelUsername: first.username }),
    ...(first?.password === undefined ? {} : { sentinelPassword: first.password }),
    ...(first?.tls === undefined ? {} : { sentinelTLS: access.tls ?? first.tls }),
    enableTLSForSentinelMode: access.tls !== undefined,
    sentinelCommandTimeout: 1000,
    sentinelRetryStrategy: retryStrategy,
    sentinelReconnectStrategy: retryStrategy,
    failoverDetector: true,
    enableOfflineQueue: false,
    retryStrategy,
    // A primary's role is read from INFO once it is ready; one that became a replica is left for the new primary.
    enableReadyCheck: true,
    maxLoadingRetryTime: 500,
    reconnectOnError: (error) => error.message.startsWith('READONLY'),
  });
}

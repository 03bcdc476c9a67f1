import { Redis } from 'ioredis';
import type { StoreObserver } from './observer.ts';
import { reasonOf } from './redis-failures.ts';
import {
  accessOptions,
  commonOptions,
  keepAlive,
  nameConnection,
  type RemoteSettings,
  readUrl,
  reconnectDelayMs,
} from './redis-options.ts';
import type { RedisClient } from './redis-scripts.ts';
import type { UncountedReason } from './store.ts';

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
export interface RedisLink {
  readonly client: RedisClient;
  /** Keys of one group may share a script call: all of them, or those of one Cluster slot. */
  groupOf(key: string): number;
  /** The server that a group's calls go to. */
  routeOf(group: number): string;
  /** Why a call of this group cannot be sent now. */
  problemOf(group: number): UncountedReason | undefined;
  close(): void;
}

/** What a link tells its store. */
export interface LinkEvents {
  /** A server can be called again. */
  ready(): void;
  /** A connection is gone, and with it what was known of the buckets behind it. */
  lost(): void;
}

const SENTINEL_PORT = 26_379;
const THE_ONLY_GROUP = 0;
const THE_ONLY_ROUTE = 'primary';

/** One Redis, or the primary that Sentinels name. */
export function openLink(
  settings: SingleSettings | SentinelSettings,
  observer: StoreObserver,
  events: LinkEvents,
): RedisLink {
  const client = settings.kind === 'redis' ? connectSingle(settings) : connectSentinel(settings);
  let problem: UncountedReason = 'disconnected';
  client.on('error', (error: Error) => {
    problem = reasonOf(error.message);
    observer.connectionFailed(problem, error.message);
  });
  client.on('ready', () => {
    problem = 'disconnected';
    nameConnection(client);
    events.ready();
  });
  client.on('close', () => events.lost());
  return {
    client,
    groupOf: () => THE_ONLY_GROUP,
    routeOf: () => THE_ONLY_ROUTE,
    problemOf: () => (client.status === 'ready' ? undefined : problem),
    close: keepAlive(client),
  };
}

function connectSingle(settings: SingleSettings): Redis {
  return new Redis({
    ...commonOptions(settings),
    ...readUrl(settings.url),
    ...accessOptions(settings),
    enableOfflineQueue: false,
    retryStrategy: reconnectDelayMs,
  });
}

function connectSentinel(settings: SentinelSettings): Redis {
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
    sentinelRetryStrategy: reconnectDelayMs,
    sentinelReconnectStrategy: reconnectDelayMs,
    failoverDetector: true,
    enableOfflineQueue: false,
    retryStrategy: reconnectDelayMs,
    // A primary's role is read from INFO once it is ready; one that became a replica is left for the new primary.
    enableReadyCheck: true,
    maxLoadingRetryTime: 500,
    reconnectOnError: (error) => error.message.startsWith('READONLY'),
  });
}

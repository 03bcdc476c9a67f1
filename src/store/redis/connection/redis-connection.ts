import { Redis, ReplyError } from 'ioredis';
import { errorText } from '../../../domain/shown.ts';
import type { UncountedReason } from '../../store.ts';
import type { StoreObserver } from '../../store-observer.ts';
import { type RedisClient, withScripts } from '../scripts.ts';
import { openClusterConnection } from './cluster.ts';
import { Reconnection } from './reconnection.ts';
import { reasonOf, shownError } from './redis-failures.ts';
import { accessOptions, commonOptions, type RemoteStoreSettings, readUrl } from './redis-options.ts';
import { ServerConnector } from './server-connector.ts';
import { checkSettings, watchSettings } from './settings-check.ts';

/** A connection to Redis of any topology. Reconnects forever, and never queues a command. */
export interface RedisConnection {
  readonly client: RedisClient;
  /** Keys of one group may share a script call. A group is a Cluster slot; elsewhere it is all keys. */
  groupOf(key: string): number;
  /** A text that Redis Cluster hashes to this group. */
  tagOf(group: number): string;
  /** The server that a group's calls go to. */
  routeOf(group: number): string;
  /** Why a call of this group cannot be sent now. */
  problemOf(group: number): UncountedReason | undefined;
  /** Resolves when each server was connected to, or could not be: a client of a Cluster is ready before it has connected to all. */
  tried(): Promise<void>;
  /** Runs `send`, and combines its calls to each server into one write. */
  inOneWrite(send: () => void): void;
  close(): void;
}

/** Events of a connection. */
export interface ConnectionEvents {
  /** A server can be called again. */
  ready(): void;
  /** A connection was lost, so cached knowledge about its buckets is no longer valid. */
  lost(): void;
}

/** For a server that closes the connection without an error, which ioredis does not report as a failure. */
const CLOSED_UNANSWERED =
  'the connection was closed before any answer: is this a Redis, and does it expect TLS where the settings have none?';

/** With Sentinels, ioredis also closes the connection to a server that turns out to be a replica. */
const NO_PRIMARY =
  'the server that a Sentinel names is a replica, or closed the connection before any answer: does it expect TLS where the settings have none?';

/** A Redis without TLS reads the handshake as an incomplete command and waits. */
const NO_HANDSHAKE = ': the port may not speak TLS, which the settings ask for';

const SENTINEL_PORT = 26_379;
const THE_ONLY_GROUP = 0;
const THE_ONLY_TAG = 'slots';
const THE_ONLY_ROUTE = 'primary';

/** Opens a connection. Returns at once. */
export function openConnection(
  settings: RemoteStoreSettings,
  observer: StoreObserver,
  events: ConnectionEvents,
): RedisConnection {
  if (settings.kind === 'cluster') return openClusterConnection(settings, observer, events);
  const reconnection = new Reconnection();
  const client = withScripts(
    settings.kind === 'redis'
      ? connectSingle(settings, reconnection)
      : connectSentinel(settings, reconnection),
  );
  return {
    client,
    groupOf: () => THE_ONLY_GROUP,
    tagOf: () => THE_ONLY_TAG,
    routeOf: () => THE_ONLY_ROUTE,
    tried: async () => {},
    // Charges of one turn of the event loop share a call, so there is one write already.
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
) {
  let problem: UncountedReason = 'disconnected';
  let state: 'unanswered' | 'failed' | 'answered' | 'closed' = 'unanswered';
  const become = (next: typeof state): void => {
    if (state !== 'closed') state = next;
  };
  const failed = (message: string, reason = reasonOf(message)): void => {
    if (state === 'closed') return;
    become('failed');
    problem = reason;
    observer.connectionFailed(reason, shownError(message));
  };
  const answered = (): void => {
    become('answered');
    problem = 'disconnected';
  };
  // Errors that did not come from the server are reported by the `close` event.
  const turnedAway = ({ message }: Error): void => {
    if (reasonOf(message) !== 'disconnected') failed(message);
  };
  client.on('connecting', () => become('unanswered'));
  client.on('error', (error: Error) => {
    const message = errorText(error);
    const isSilent = message === 'connect ETIMEDOUT' && client.options.tls !== undefined;
    failed(isSilent ? message + NO_HANDSHAKE : message, reasonOf(message));
    // ioredis goes on after a refused SELECT, and everything would be counted in database 0.
    if (client.status === 'connect' && error instanceof ReplyError) client.stream.destroy();
  });
  client.on('ready', () => {
    if (client.stream.destroyed) return;
    reconnection.introduce(client).then(answered, turnedAway);
    void checkSettings(client, THE_ONLY_ROUTE, observer);
    events.ready();
  });
  client.on('close', () => {
    if (state === 'unanswered')
      failed(client.options.sentinels ? NO_PRIMARY : CLOSED_UNANSWERED, 'disconnected');
    events.lost();
  });
  const disconnect = reconnection.keepAlive(client);
  const endWatch = watchSettings(() => [[THE_ONLY_ROUTE, client]], observer);
  return {
    problemOf() {
      if (client.status === 'ready') return undefined;
      return reconnection.hasLeftReplica ? 'readonly' : problem;
    },
    close() {
      become('closed');
      endWatch();
      disconnect();
    },
  };
}

function connectSingle(
  settings: RemoteStoreSettings & { kind: 'redis' },
  { nextDelayMs: retryStrategy, leavesReplica: reconnectOnError }: Reconnection,
): Redis {
  return new Redis({
    ...commonOptions(settings),
    ...readUrl(settings.url),
    ...accessOptions(settings),
    Connector: ServerConnector,
    enableOfflineQueue: false,
    retryStrategy,
    reconnectOnError,
  });
}

function connectSentinel(
  settings: RemoteStoreSettings & { kind: 'sentinel' },
  { nextDelayMs: retryStrategy, leavesReplica: reconnectOnError }: Reconnection,
): Redis {
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
    // A server that has become a replica is disconnected, so that the new primary is found.
    enableReadyCheck: true,
    maxLoadingRetryTime: 500,
    reconnectOnError,
  });
}

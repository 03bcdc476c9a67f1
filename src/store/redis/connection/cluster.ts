import calculateSlot from 'cluster-key-slot';
import { Cluster, type Redis } from 'ioredis';
import { sharedLookup } from '../../../domain/connections/shared-lookup.ts';
import { errorText } from '../../../domain/shown.ts';
import type { UncountedReason } from '../../store.ts';
import { SERVER_SETTINGS, type StoreObserver } from '../../store-observer.ts';
import { withScripts } from '../scripts.ts';
import { Reconnection } from './reconnection.ts';
import type { ConnectionEvents, RedisConnection } from './redis-connection.ts';
import { reasonOf, shownError } from './redis-failures.ts';
import { accessOptions, commonOptions, type RemoteStoreSettings, readUrl } from './redis-options.ts';
import { ServerConnector } from './server-connector.ts';
import { checkSettings, watchSettings } from './settings-check.ts';

/** The smallest number that hashes to each slot, as far as it has been looked for. */
const tags = new Map<number, string>();
let lastNumber = 0;

/** 16,384 slots take some 170,000 numbers in all. */
function tagOf(slot: number): string {
  for (;;) {
    const known = tags.get(slot);
    if (known !== undefined) return known;
    lastNumber += 1;
    const tag = `${lastNumber}`;
    const ofTag = calculateSlot(tag);
    if (!tags.has(ofTag)) tags.set(ofTag, tag);
  }
}

/** A Redis Cluster, found through some of its nodes. A dead master degrades its own slots and no others. */
export function openClusterConnection(
  settings: RemoteStoreSettings & { kind: 'cluster' },
  observer: StoreObserver,
  events: ConnectionEvents,
): RedisConnection {
  const reconnection = new Reconnection();
  const cluster = withScripts(connect(settings, reconnection.nextDelayMs));
  const nodes = new Map<string, Redis>();
  let problem: UncountedReason = 'disconnected';
  const failed = (error: Error & { readonly lastNodeError?: Error }): void => {
    // The last node's error is more helpful than "Failed to refresh slots cache".
    const cause = errorText(error.lastNodeError ?? error);
    problem = reasonOf(cause);
    observer.connectionFailed(problem, shownError(cause));
  };
  cluster.on('error', failed);
  cluster.on('node error', failed);
  cluster.on('+node', (node: Redis) => {
    nodes.set(addressOf(node), node);
    node.on('ready', () => {
      reconnection.introduce(node).catch(() => {});
      void checkSettings(node, addressOf(node), observer);
      events.ready();
    });
    node.on('close', () => events.lost());
    // A node that connects lazily would queue its first command.
    if (node.status === 'wait') node.connect().catch(() => {});
  });
  cluster.on('-node', (node: Redis) => {
    if (nodes.get(addressOf(node)) !== node) return;
    nodes.delete(addressOf(node));
    // A server that has left the Cluster affects no limit.
    for (const setting of SERVER_SETTINGS) observer.settingChecked(addressOf(node), setting, undefined);
  });
  const endWatch = watchSettings(() => nodes, observer);
  const disconnect = reconnection.keepAlive(cluster);
  const routeOf = (slot: number): string => slotsOf(cluster)[slot]?.[0] ?? 'unassigned';
  return {
    client: cluster,
    groupOf: calculateSlot,
    tagOf,
    routeOf,
    problemOf(slot) {
      if (cluster.status !== 'ready') return problem;
      const node = nodes.get(routeOf(slot));
      // Without a known node the call goes to any node, which redirects it.
      return node === undefined || node.status === 'ready' ? undefined : 'disconnected';
    },
    async tried() {
      await Promise.all(cluster.nodes('master').map(tried));
    },
    inOneWrite(send) {
      const streams = [...nodes.values()]
        .filter(({ status }) => status === 'ready')
        .map(({ stream }) => stream);
      for (const stream of streams) stream.cork();
      try {
        send();
      } finally {
        for (const stream of streams) stream.uncork();
      }
    },
    close() {
      endWatch();
      disconnect();
    },
  };
}

/** Resolves when the node is ready, or its connection has failed. */
function tried(node: Redis): Promise<void> {
  if (node.status === 'ready' || node.status === 'end') return Promise.resolve();
  return new Promise((resolve) => {
    node.once('ready', resolve);
    node.once('end', resolve);
  });
}

/** ioredis's map from slots to addresses, the master's first; its types do not include it. */
function slotsOf(cluster: Cluster): readonly (readonly string[] | undefined)[] {
  return (cluster as unknown as { slots: readonly (readonly string[] | undefined)[] }).slots;
}

function addressOf(node: Redis): string {
  return `${node.options.host}:${node.options.port}`;
}

/** Of one call: to the new master of a slot, to the one that a key has moved to, and once more until its other keys have. */
const MOST_REDIRECTIONS = 3;

function connect(
  settings: RemoteStoreSettings & { kind: 'cluster' },
  clusterRetryStrategy: () => number,
): Cluster {
  const [first] = settings.nodes.map((url) => readUrl(url));
  const access = {
    ...(first?.username === undefined ? {} : { username: first.username }),
    ...(first?.password === undefined ? {} : { password: first.password }),
    ...(first?.tls === undefined ? {} : { tls: first.tls }),
    ...accessOptions(settings),
  };
  return new Cluster(
    settings.nodes.map((url) => readUrl(url)).map(({ host, port }) => ({ host, port })),
    {
      redisOptions: { ...commonOptions(settings), ...access, Connector: ServerConnector },
      enableOfflineQueue: false,
      enableReadyCheck: false,
      clusterRetryStrategy,
      // A call whose connection broke may have been counted, so it is never repeated.
      retryDelayOnFailover: 0,
      retryDelayOnClusterDown: 0,
      // Of a slot that is moved, Redis says so before the deadline: a deadline that is missed counts against its whole master.
      retryDelayOnTryAgain: Math.min(5, settings.deadlineMs / (2 * MOST_REDIRECTIONS)),
      maxRedirections: MOST_REDIRECTIONS,
      // Certificates name hosts, so addresses that the cluster announces are not resolved.
      dnsLookup: (host, callback) =>
        access.tls === undefined
          ? sharedLookup(host, {}, (error, address) => callback(error, String(address)))
          : callback(null, host),
    },
  );
}

import { type StoreObserver, silentObserver } from '../../observer.ts';
import { type ClusterSettings, openClusterConnection } from './cluster.ts';
import {
  type ConnectionEvents,
  openConnection,
  type RedisConnection,
  type SentinelSettings,
  type SingleSettings,
} from './connection.ts';

export type RemoteStoreSettings = SingleSettings | SentinelSettings | ClusterSettings;

/** A connection to the Redis of the settings, whatever its topology. */
export function openAnyLink(
  settings: RemoteStoreSettings,
  events: ConnectionEvents,
  observer: StoreObserver = silentObserver,
): RedisConnection {
  return settings.kind === 'cluster'
    ? openClusterConnection(settings, observer, events)
    : openConnection(settings, observer, events);
}

import { DenialCache } from './denial-cache.ts';
import { MemoryStore } from './memory-store.ts';
import { type StoreObserver, silentObserver } from './observer.ts';
import { type ClusterSettings, openClusterConnection } from './redis/cluster.ts';
import {
  type ConnectionEvents,
  openConnection,
  type SentinelSettings,
  type SingleSettings,
} from './redis/connection.ts';
import { RedisStore } from './redis/redis-store.ts';
import type { Store } from './store.ts';

/** The `store` section of weir.yaml without the gateway's own settings. */
export type StoreSettings = { readonly kind: 'memory' } | SingleSettings | SentinelSettings | ClusterSettings;

/**
 * Opens the configured store. Returns at once: while Redis cannot be reached, charges are `uncounted`; counting starts as soon as
 * it can.
 */
export function openStore(settings: StoreSettings, observer: StoreObserver = silentObserver): Store {
  if (settings.kind === 'memory') return new MemoryStore();
  const open = (events: ConnectionEvents) =>
    settings.kind === 'cluster'
      ? openClusterConnection(settings, observer, events)
      : openConnection(settings, observer, events);
  const store = new RedisStore(open, settings.deadlineMs, observer, () => denials.forget());
  const denials = new DenialCache(store, observer);
  return denials;
}

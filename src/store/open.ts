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

/** The `store` section of weir.yaml, as far as it concerns a store. */
export type StoreSettings = { readonly kind: 'memory' } | SingleSettings | SentinelSettings | ClusterSettings;

/**
 * The store that the settings ask for. It returns at once: a Redis that cannot be reached is no error but a store that
 * answers `uncounted`, and that counts as soon as it can.
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

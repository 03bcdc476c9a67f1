import { DenialCache } from './denial-cache.ts';
import { MemoryStore } from './memory-store.ts';
import { type StoreObserver, silentObserver } from './observer.ts';
import { openAnyLink, type RemoteStoreSettings } from './redis/connection/link.ts';
import { RedisStore } from './redis/redis-store.ts';
import { sharedByRedis } from './redis/shared/shared-store.ts';
import type { SharedStore } from './shared-store.ts';
import type { Store } from './store.ts';

/** The `store` section of weir.yaml without the gateway's own settings. */
export type StoreSettings = { readonly kind: 'memory' } | RemoteStoreSettings;

/**
 * Opens the configured store. Returns at once: while Redis cannot be reached, charges are `uncounted`; counting starts as soon as
 * it can.
 */
export function openStore(settings: StoreSettings, observer: StoreObserver = silentObserver): Store {
  return offerOf(settings).openCounter(observer);
}

/**
 * What the replicas with this store share besides counts; undefined where this process is the only replica.
 *
 * @param wrongTypeFound called with each key that holds another type than Weir writes, whenever it is read
 */
export function openShared(
  settings: StoreSettings & { readonly keyPrefix: string },
  wrongTypeFound: (key: string) => void = () => {},
): SharedStore | undefined {
  return offerOf(settings).shared(settings.keyPrefix, wrongTypeFound);
}

/** What a store offers. Nothing connects before it is used. */
interface Offer {
  openCounter(observer: StoreObserver): Store;
  shared(keyPrefix: string, wrongTypeFound: (key: string) => void): SharedStore | undefined;
}

/** The only place that knows the kinds of stores apart. */
function offerOf(settings: StoreSettings): Offer {
  switch (settings.kind) {
    case 'memory':
      return { openCounter: () => new MemoryStore(), shared: () => undefined };
    case 'redis':
    case 'cluster':
    case 'sentinel':
      return {
        openCounter: (observer) => openRedis(settings, observer),
        shared: (keyPrefix, wrongTypeFound) => sharedByRedis({ ...settings, keyPrefix }, wrongTypeFound),
      };
  }
}

function openRedis(settings: RemoteStoreSettings, observer: StoreObserver): Store {
  const store = new RedisStore(
    (events) => openAnyLink(settings, events, observer),
    settings.deadlineMs,
    observer,
    () => denials.forget(),
  );
  const denials = new DenialCache(store, observer);
  return denials;
}

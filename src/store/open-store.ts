import { DenialCache } from './denial-cache.ts';
import type { JournaledCounts, LossListener } from './journal/journaled-counts.ts';
import { MemoryStore } from './memory-store.ts';
import type { RemoteStoreSettings } from './redis/connection/redis-options.ts';
import { Marks } from './redis/marks.ts';
import { RedisCounts } from './redis/redis-counts.ts';
import { RedisStore } from './redis/redis-store.ts';
import { sharedByRedis } from './redis/shared/shared-by-redis.ts';
import type { SharedStore } from './shared-store.ts';
import type { Store } from './store.ts';
import { type StoreObserver, silentObserver } from './store-observer.ts';

/** The `store` section of weir.yaml without the gateway's own settings. */
export type StoreSettings = { readonly kind: 'memory' } | RemoteStoreSettings;

/**
 * Opens the configured store. Returns at once: while Redis cannot be reached, charges are `uncounted`; counting starts as soon as
 * it can.
 *
 * @param marks with a journal: notices when Redis has lost what durable limits counted
 */
export function openStore(
  settings: StoreSettings,
  observer: StoreObserver = silentObserver,
  marks?: Marks,
): Store {
  if (settings.kind === 'memory') {
    return new MemoryStore(undefined, undefined, undefined, undefined, observer);
  }
  const store = new RedisStore(settings, observer, () => denials.forget(), marks);
  const slotOf = settings.kind === 'cluster' ? (key: string) => store.groupOf(key) : undefined;
  const denials = new DenialCache(store, observer, undefined, slotOf);
  return denials;
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
  return settings.kind === 'memory' ? undefined : sharedByRedis(settings, wrongTypeFound);
}

/** What a journal needs of the store: the marks, which its charges carry, and the counts. */
export interface FollowedStore {
  readonly marks: Marks;
  readonly counts: JournaledCounts;
}

/** Nothing for the memory store, whose counts end with the process. */
export function followStore(
  settings: StoreSettings,
  prefix: string,
  listener: LossListener,
): FollowedStore | undefined {
  if (settings.kind === 'memory') return undefined;
  const marks = new Marks(prefix, listener);
  return { marks, counts: new RedisCounts(settings, marks) };
}

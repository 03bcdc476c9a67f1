import { randomUUID } from 'node:crypto';
import type { Settings } from '../../config/settings/settings.ts';
import type { SharedObserver } from '../../facts/ignored.ts';
import { Replicas } from '../../facts/replicas.ts';
import { ShareStore } from '../../store/share-store.ts';
import type { SharedStore } from '../../store/shared-store.ts';
import type { Store } from '../../store/store.ts';

/**
 * With `onStoreFailure: share`, limits what the store does not count, and follows how many replicas there are.
 *
 * @param shared undefined where no other replica shares the store
 * @returns the store that requests are charged to, which closes with the one below it, and the replicas that the limits are divided by
 */
export function runShare(
  { onStoreFailure, expectedReplicas }: Settings['store'],
  store: Store,
  shared: SharedStore | undefined,
  metrics: SharedObserver,
): { readonly store: Store; readonly replicas: Replicas | undefined; close(): Promise<void> } {
  if (onStoreFailure !== 'share') return { store, replicas: undefined, async close() {} };
  const replicas = new Replicas(shared?.openPresence(randomUUID()), expectedReplicas);
  metrics.showReplicas(replicas);
  replicas.start();
  return { store: new ShareStore(store, () => replicas.count), replicas, close: () => replicas.close() };
}

import { bucketKey } from '../../keys.ts';
import type { Claims } from '../../shared-store.ts';
import { openAnyLink, type RemoteStoreSettings } from '../connection/link.ts';

/** Opens the claims of the replicas with this Redis and key prefix. Each is a key that only its first writer gets. */
export function openClaims(settings: RemoteStoreSettings & { readonly keyPrefix: string }): Claims {
  const link = openAnyLink(settings, { ready() {}, lost() {} });
  return {
    async claim({ tag, name, owner }, lifeMs) {
      // Names of buckets have no point, so that no bucket has this key.
      const key = bucketKey(settings.keyPrefix, tag, name, owner);
      return (await link.client.set(key, '1', 'PX', lifeMs, 'NX')) !== null;
    },
    close: () => link.close(),
  };
}

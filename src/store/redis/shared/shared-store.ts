import type { SharedStore } from '../../shared-store.ts';
import type { RemoteStoreSettings } from '../connection/link.ts';
import { openBoard } from './board.ts';
import { subscribe } from './channel.ts';
import { openClaims } from './claims.ts';
import { openRecord } from './open-record.ts';
import { openPresence } from './presence.ts';

/** What replicas with this Redis and key prefix share besides counts. */
export function sharedByRedis(settings: RemoteStoreSettings & { readonly keyPrefix: string }): SharedStore {
  const channelOf = (topic: string) => `${settings.keyPrefix}:1:${topic}`;
  return {
    subscribe: (topic, listener) => subscribe(settings, channelOf(topic), listener),
    withRecord: (topic, use, connectMs) => openRecord(settings, channelOf(topic), use, connectMs),
    openBoard: (topic, replica) => openBoard(settings, topic, replica),
    openPresence: (replica) => openPresence(settings, replica),
    openClaims: () => openClaims(settings),
  };
}

import { bucketKey } from '../../keys.ts';
import type { Claims, SharedStore } from '../../shared-store.ts';
import { openAnyLink, type RemoteStoreSettings } from '../connection/link.ts';
import { runScript } from '../run-script.ts';
import { Script } from '../script-call.ts';
import { openBoard } from './board.ts';
import { subscribe } from './channel.ts';
import { openRecord } from './open-record.ts';
import { openPresence } from './presence.ts';
import type { WrongTypeFound } from './read-shared.ts';

const claimScript = new Script('claim');

/** What replicas with this Redis and key prefix share besides counts. */
export function sharedByRedis(
  settings: RemoteStoreSettings & { readonly keyPrefix: string },
  wrongTypeFound: WrongTypeFound,
): SharedStore {
  const channelOf = (topic: string) => `${settings.keyPrefix}:1:${topic}`;
  return {
    subscribe: (topic, listener) => subscribe(settings, channelOf(topic), listener, wrongTypeFound),
    withRecord: (topic, use, connectMs) =>
      openRecord(settings, channelOf(topic), use, connectMs, wrongTypeFound),
    openBoard: (topic, replica) => openBoard(settings, topic, replica, wrongTypeFound),
    openPresence: (replica) => openPresence(settings, replica, wrongTypeFound),
    openClaims: () => openClaims(settings),
  };
}

/** Opens the claims of the replicas with this Redis and key prefix. Each is a key that only its first writer gets. */
function openClaims(settings: RemoteStoreSettings & { readonly keyPrefix: string }): Claims {
  const link = openAnyLink(settings, { ready() {}, lost() {} });
  return {
    async claim({ tag, name, owner }, lifeMs) {
      // Names of buckets have no point, so that no bucket has this key.
      const key = bucketKey(settings.keyPrefix, tag, name, owner);
      return (await runScript(link.client, claimScript, [key], [lifeMs])) === 1;
    },
    close: () => link.close(),
  };
}

import { PRESENCE_MS, type Presence } from '../../shared-store.ts';
import { openAnyLink, type RemoteStoreSettings } from '../connection/link.ts';
import { readShared, type WrongTypeFound } from './read-shared.ts';

/** Longer names are not those of a replica, and more replicas are not counted. */
const LONGEST_NAME = 64;
const MOST_REPLICAS = 1_000;

/** Opens the list of the replicas with this Redis and key prefix. */
export function openPresence(
  settings: RemoteStoreSettings & { readonly keyPrefix: string },
  replica: string,
  wrongTypeFound: WrongTypeFound = () => {},
): Presence {
  const link = openAnyLink(settings, { ready() {}, lost() {} });
  const { client } = link;
  const key = `${settings.keyPrefix}:1:replicas`;
  return {
    async announce() {
      const part = { most: MOST_REPLICAS, longestBytes: LONGEST_NAME };
      const read = await readShared(client, key, part, wrongTypeFound);
      // In this order on the connection: what fails is never taken for a replica that is alive.
      await Promise.all([
        read.isWrongType ? client.del(key) : undefined,
        client.zremrangebyscore(key, '-inf', read.nowMs),
        client.zadd(key, read.nowMs + PRESENCE_MS, replica),
        client.pexpire(key, PRESENCE_MS),
      ]);
      const alive = new Set(read.members).add(replica);
      return { replicas: alive.size, isContinued: read.members.includes(replica) };
    },
    async close() {
      await client.zrem(key, replica).catch(() => undefined);
      link.close();
    },
  };
}

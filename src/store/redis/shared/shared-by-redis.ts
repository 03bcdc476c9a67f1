import { pace } from '../../../domain/pace.ts';
import { bucketKey } from '../../keys.ts';
import type { Agreement, Claim, Presence, SharedClaims, SharedStore } from '../../shared-store.ts';
import { type RemoteStoreSettings, readUrl } from '../connection/redis-options.ts';
import { openArchive } from './archive.ts';
import { openBoard } from './board.ts';
import { Subscription } from './channel.ts';
import { readShared, type WrongTypeFound } from './read-shared.ts';
import { type RecordedChannel, withRecord } from './record.ts';
import { openOutbox } from './redis-outbox.ts';
import { SharedLink } from './shared-link.ts';

/** No replica has a longer name. More replicas are not counted. */
const LONGEST_NAME = 64;
const MOST_REPLICAS = 1_000;

/**
 * What replicas with this Redis and key prefix share besides counts. It takes three connections at most, which are open while they are
 * used: one receives messages, and in RESP2 can do nothing else; one is for boards, whose texts are long; one is for all other commands,
 * which are short. Charges have a connection of their own, so they wait for none of these.
 */
export function sharedByRedis(
  settings: RemoteStoreSettings & { readonly keyPrefix: string },
  wrongTypeFound: WrongTypeFound,
): SharedStore {
  const { keyPrefix } = settings;
  const commands = new SharedLink(settings);
  const subscriber = new SharedLink(settings);
  const boards = new SharedLink(settings);
  const database = settings.kind === 'redis' ? readUrl(settings.url).db : undefined;
  const channelOf = (topic: string): RecordedChannel => {
    const key = `${keyPrefix}:1:${topic}`;
    // Redis publishes to the subscribers of all its databases.
    return { name: database === undefined ? key : `${key}:${database}`, recordKey: `${key}:record` };
  };
  const links = { subscriber, commands, clockKey: channelOf('limits').recordKey };
  return {
    subscribe: (topic, listener) => new Subscription(links, channelOf(topic), listener, wrongTypeFound),
    withRecord: (topic, use, connectMs) =>
      withRecord(commands, channelOf(topic), use, wrongTypeFound, connectMs),
    openBoard: (topic, replica) => openBoard(boards, `${keyPrefix}:1:{${topic}}`, replica, wrongTypeFound),
    openPresence: (replica) => openPresence(commands, `${keyPrefix}:1:replicas`, replica, wrongTypeFound),
    openClaims: () => openClaims(commands, keyPrefix),
    openOutbox: (topic) => openOutbox(commands, `${keyPrefix}:1:{${topic}}`),
    openAgreement: (topic) => openAgreement(commands, `${keyPrefix}:1:${topic}`),
    openArchive: (topic) => openArchive(boards, `${keyPrefix}:1:${topic}`, wrongTypeFound),
  };
}

/** Opens the list of replicas that is in the sorted set `key`. */
function openPresence(
  shared: SharedLink,
  key: string,
  replica: string,
  wrongTypeFound: WrongTypeFound,
): Presence {
  const link = shared.use();
  const { client } = link;
  return {
    async announce() {
      const part = { most: MOST_REPLICAS, longestBytes: LONGEST_NAME };
      const read = await readShared(client, key, part, wrongTypeFound);
      // In this order on the connection: what fails is never taken for a replica that is alive.
      await Promise.all([
        read.isWrongType ? client.del(key) : undefined,
        client.zremrangebyscore(key, '-inf', read.nowMs),
        client.zadd(key, read.nowMs + pace.presenceMs, replica),
        client.pexpire(key, pace.presenceMs),
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

/** Opens the claims of the replicas with this key prefix. Each is a key that only its first writer gets. */
function openClaims(shared: SharedLink, keyPrefix: string): SharedClaims {
  const link = shared.use();
  // Names of buckets have no point, so that no bucket has this key.
  const keyOf = ({ tag, name, owner }: Claim) => bucketKey(keyPrefix, tag, name, owner);
  return {
    claim: async (claim, lifeMs) => (await link.client.claim(keyOf(claim), lifeMs)) === 1,
    async keep(claim, lifeMs) {
      await link.client.pexpire(keyOf(claim), lifeMs);
    },
    close: () => link.close(),
  };
}

function openAgreement(shared: SharedLink, key: string): Agreement {
  const link = shared.use();
  return {
    text: async (proposed, lifeMs) => String(await link.client.agree(key, proposed, lifeMs)),
    close: () => link.close(),
  };
}

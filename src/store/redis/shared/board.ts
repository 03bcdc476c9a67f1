/**
 * A board on which every replica keeps one text, for the others to read. A text that is not renewed disappears. Its keys
 * share a hash tag, so that one command reads all of them in a Cluster as well.
 */
import { pace } from '../../../domain/pace.ts';
import type { Board } from '../../shared-store.ts';
import type { RedisClient } from '../scripts.ts';
import { readShared, type WrongTypeFound } from './read-shared.ts';
import type { SharedLink } from './shared-link.ts';

/** No replica has a longer name or text: its text has at most 1,200 rows of owners, a minute and 40 refusals. */
const LONGEST_NAME = 64;
const LONGEST_TEXT = 524_288;

/** More replicas than this are not read, and so many at a time. */
const MOST_REPLICAS = 500;
const PER_READ = 25;

/** Opens the board whose names are in the sorted set `index`. */
export function openBoard(
  shared: SharedLink,
  index: string,
  replica: string,
  wrongTypeFound: WrongTypeFound,
): Board {
  const link = shared.use();
  const { client } = link;
  const keyOf = (name: string) => `${index}:${name}`;
  const readPart = (most: number) =>
    readShared(client, index, { most, longestBytes: LONGEST_NAME }, wrongTypeFound);
  return {
    async post(text) {
      const { nowMs, isWrongType } = await readPart(0);
      if (isWrongType) await client.del(index);
      await client.psetex(keyOf(replica), pace.boardMs, text);
      await client.zremrangebyscore(index, '-inf', nowMs);
      await client.zadd(index, nowMs + pace.boardMs, replica);
      await client.pexpire(index, pace.boardMs);
    },
    async read() {
      const { members, leftOut } = await readPart(MOST_REPLICAS);
      const texts = new Map<string, string>();
      let tooLong = 0;
      for (let from = 0; from < members.length; from += PER_READ) {
        const names = members.slice(from, from + PER_READ);
        const read = await readTexts(client, names.map(keyOf));
        for (const [index, name] of names.entries()) {
          const text = read[index];
          if (typeof text === 'string') texts.set(name, text);
        }
        tooLong += read.filter((text) => text === TOO_LONG).length;
      }
      return { texts, leftOut: leftOut + tooLong };
    },
    async close() {
      await client.del(keyOf(replica)).catch(() => undefined);
      link.close();
    },
  };
}

/** What the script returns for a text that is too long. */
const TOO_LONG = 0;

/** The texts of these keys, in order. */
async function readTexts(client: RedisClient, keys: readonly string[]): Promise<readonly unknown[]> {
  const reply = await client.readBoard([keys.length, ...keys, LONGEST_TEXT]);
  return Array.isArray(reply) ? reply : [];
}

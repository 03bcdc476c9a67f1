/**
 * A board on which every replica keeps one text, for the others to read. A text that is not renewed disappears. Its keys
 * share a hash tag, so that one command reads all of them in a Cluster as well.
 */
import type { RemoteStoreSettings } from './channel.ts';
import { openAnyLink } from './record.ts';

/** How long a text stays without being renewed. */
const LIFE_MS = 3_500;

export interface Board {
  /** Puts this replica's text on the board, in place of its last. Rejects if Redis does not take it. */
  post(text: string): Promise<void>;
  /** The texts of all replicas by name, this one included. Rejects if Redis cannot be read. */
  read(): Promise<ReadonlyMap<string, string>>;
  /** Takes this replica's text off the board. */
  close(): Promise<void>;
}

/** Opens the board of a topic. It connects by itself, and never queues a command. */
export function openBoard(
  settings: RemoteStoreSettings & { readonly keyPrefix: string },
  topic: string,
  replica: string,
): Board {
  const link = openAnyLink(settings, { ready() {}, lost() {} });
  const { client } = link;
  const index = `${settings.keyPrefix}:1:{${topic}}`;
  const keyOf = (name: string) => `${index}:${name}`;
  return {
    async post(text) {
      const nowMs = await redisNowMs(client);
      await client.psetex(keyOf(replica), LIFE_MS, text);
      await client.zremrangebyscore(index, '-inf', nowMs);
      await client.zadd(index, nowMs + LIFE_MS, replica);
      await client.pexpire(index, LIFE_MS);
    },
    async read() {
      const names = await client.zrangebyscore(index, await redisNowMs(client), '+inf');
      const texts = names.length === 0 ? [] : await client.mget(names.map(keyOf));
      return new Map(
        names.flatMap((name, index) => {
          const text = texts[index];
          return text ? [[name, text] as const] : [];
        }),
      );
    },
    async close() {
      await client.del(keyOf(replica)).catch(() => undefined);
      link.close();
    },
  };
}

async function redisNowMs(client: { time(): Promise<(string | number)[]> }): Promise<number> {
  const [seconds = 0, micros = 0] = (await client.time()).map(Number);
  return seconds * 1_000 + Math.floor(micros / 1_000);
}

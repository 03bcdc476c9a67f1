import { readFileSync } from 'node:fs';
import type { Callback, Cluster, Redis } from 'ioredis';

type Argument = string | number;

/** The scripts of `lua/` as methods of a client. In a Cluster, the keys of a call are in one slot. */
interface Scripts {
  /** Takes the number of keys, the keys, then the texts. `callback` is called once: with the reply, or with the error of Redis or of its connection. */
  chargeBuffer(args: readonly Argument[], callback: Callback<Buffer>): Promise<unknown>;
  claim(key: string, lifeMs: number): Promise<unknown>;
  /** Takes the number of keys, the keys, then the longest text in bytes. */
  readBoard(args: readonly Argument[]): Promise<unknown>;
  readShared(key: string, from: string, skip: number, most: number, longestBytes: number): Promise<unknown>;
  share(record: string, args: readonly Argument[]): Promise<unknown>;
}

/** Each file of `lua/`, and how many keys its calls have where that is always the same. */
const DEFINITIONS = {
  charge: { file: 'charge' },
  claim: { file: 'claim', numberOfKeys: 1 },
  readBoard: { file: 'read-board' },
  readShared: { file: 'read-shared', numberOfKeys: 1 },
  share: { file: 'share', numberOfKeys: 1 },
};

const definitions = Object.entries(DEFINITIONS).map(([name, { file, ...keys }]) => ({
  name,
  definition: { lua: textOf(file), ...keys },
}));

/** The text of a script. */
export function textOf(file: string): string {
  return readFileSync(new URL(`../../../lua/${file}.lua`, import.meta.url), 'utf8');
}

export type RedisClient = (Redis | Cluster) & Scripts;

/**
 * Gives a client the scripts. ioredis sends the text of a script with its first call on a connection (EVAL), then its digest (EVALSHA), and
 * repeats a call that Redis did not run because it does not have the script (NOSCRIPT), for example after a restart.
 */
export function withScripts<Client extends Redis | Cluster>(client: Client): Client & Scripts {
  for (const { name, definition } of definitions) client.defineCommand(name, definition);
  return client as Client & Scripts;
}

/** Whether Redis itself answered with this error: the connection's own errors leave open what has happened. */
export function isRefusal(error: unknown): error is Error {
  return error instanceof Error && error.name === 'ReplyError';
}

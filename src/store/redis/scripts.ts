import { readFileSync } from 'node:fs';
import type { Callback, Cluster, Redis } from 'ioredis';

type Argument = string | number;

/** The scripts of `lua/` as methods of a client. In a Cluster, the keys of a call are in one slot. */
interface Scripts {
  /** Takes the number of keys, the keys, then the texts. Calls `callback` once: with the reply, or with the error of Redis or of its connection. */
  chargeBuffer(args: readonly Argument[], callback: Callback<Buffer>): Promise<unknown>;
  /** Takes the two keys, then the arguments. */
  addMessage(...args: readonly Argument[]): Promise<unknown>;
  agree(key: string, proposed: string, lifeMs: number): Promise<unknown>;
  claim(key: string, lifeMs: number): Promise<unknown>;
  mark(key: string, action: 'read' | 'begin' | 'take' | 'end', recovery: string): Promise<unknown>;
  /** Takes the number of keys, the keys, the name of the recovery, then the texts. */
  putBack(args: readonly Argument[]): Promise<unknown>;
  /** Takes the number of keys, the keys, then the longest text in bytes. */
  readBoard(args: readonly Argument[]): Promise<unknown>;
  /** Takes the number of keys, the keys, then the statements. Calls `callback` once. */
  renew(args: readonly Argument[], callback: Callback<readonly number[]>): Promise<unknown>;
  readShared(key: string, from: string, skip: number, most: number, longestBytes: number): Promise<unknown>;
  /** Takes the number of keys, the keys, then the texts. */
  settleBuffer(args: readonly Argument[]): Promise<unknown>;
  share(record: string, args: readonly Argument[]): Promise<unknown>;
  /** Takes the two keys, then the arguments. */
  takeMessages(...args: readonly Argument[]): Promise<unknown>;
}

/** By the name of the method. `numberOfKeys` is left out where it differs between calls. */
const DEFINITIONS = {
  addMessage: { lua: textOf('add-message'), numberOfKeys: 2 },
  agree: { lua: textOf('agree'), numberOfKeys: 1 },
  charge: { lua: textOf('charge') },
  claim: { lua: textOf('claim'), numberOfKeys: 1 },
  mark: { lua: textOf('mark'), numberOfKeys: 1 },
  putBack: { lua: textOf('put-back') },
  readBoard: { lua: textOf('read-board') },
  readShared: { lua: textOf('read-shared'), numberOfKeys: 1 },
  renew: { lua: textOf('renew') },
  settle: { lua: textOf('settle') },
  share: { lua: textOf('share'), numberOfKeys: 1 },
  takeMessages: { lua: textOf('take-messages'), numberOfKeys: 2 },
};

/** The text of lua/charge.lua. */
export const CHARGE = DEFINITIONS.charge.lua;

/** The text of lua/settle.lua. */
export const SETTLE = DEFINITIONS.settle.lua;

export type RedisClient = (Redis | Cluster) & Scripts;

/**
 * Adds the scripts to a client. ioredis sends the text of a script with its first call on a connection (EVAL), then its digest (EVALSHA). It
 * repeats a call, once, that Redis did not run because it does not have the script (NOSCRIPT), for example after a failover.
 */
export function withScripts<Client extends Redis | Cluster>(client: Client): Client & Scripts {
  for (const [name, definition] of Object.entries(DEFINITIONS)) client.defineCommand(name, definition);
  return client as Client & Scripts;
}

/** Whether Redis itself answered with this error: the connection's own errors leave open what has happened. */
export function isRefusal(error: unknown): error is Error {
  return error instanceof Error && error.name === 'ReplyError';
}

function textOf(file: string): string {
  return readFileSync(new URL(`../../../lua/${file}.lua`, import.meta.url), 'utf8');
}

import type { ClockReading } from '../../shared-store.ts';
import type { RedisClient } from '../scripts.ts';

/** Members of a sorted set by expiry, and the clock of the server that holds it. */
export interface SetReading extends ClockReading {
  readonly members: readonly string[];
  /** When each member expires; 0 if another program wrote what is no time. */
  readonly expiriesMs: readonly number[];
  /** How many there were in this part, those that were left out for their length included. */
  readonly found: number;
  readonly leftOut: number;
  /** Whether the key holds another type, which another program wrote. Then there are no members, and a write has to replace it. */
  readonly isWrongType: boolean;
  /** Where the next part begins. */
  readonly next: { readonly from: string; readonly skip: number };
}

/** Receives a key that holds another type than Weir writes, whenever it is read. Must not throw. */
export type WrongTypeFound = (key: string) => void;

/** Reads members that have not expired by the clock of Redis. */
export async function readShared(
  client: RedisClient,
  key: string,
  part: { most: number; longestBytes: number; from?: string; skip?: number },
  wrongTypeFound: WrongTypeFound,
): Promise<SetReading> {
  const { most, longestBytes, from = '', skip = 0 } = part;
  const sentMs = performance.now();
  const reply = await client.readShared(key, from, skip, most, longestBytes);
  const answeredMs = performance.now();
  const [nowMs, found, leftOut, nextFrom, nextSkip, wrong, ...rest] = Array.isArray(reply) ? reply : [];
  const isWrongType = Number(wrong) === 1;
  if (isWrongType) wrongTypeFound(key);
  return {
    isWrongType,
    nowMs: Number(nowMs),
    sentMs,
    answeredMs,
    members: rest.filter((_, place) => place % 2 === 0).map(String),
    expiriesMs: rest.filter((_, place) => place % 2 === 1).map(timeOf),
    found: Number(found),
    leftOut: Number(leftOut),
    next: { from: String(nextFrom), skip: Number(nextSkip) },
  };
}

function timeOf(score: unknown): number {
  const time = Number(score);
  return Number.isSafeInteger(time) ? time : 0;
}

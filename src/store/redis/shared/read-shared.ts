import type { ClockReading } from '../../shared-store.ts';
import { runScript } from '../run-script.ts';
import { Script } from '../script-call.ts';
import type { RedisClient } from '../scripts.ts';

/** Members of a sorted set by expiry, and the clock of the server that holds it. */
export interface Reading extends ClockReading {
  readonly members: readonly string[];
  /** How many there were in this part, those that were left out for their length included. */
  readonly found: number;
  readonly leftOut: number;
  /** Where the next part begins. */
  readonly next: { readonly from: string; readonly skip: number };
}

interface Part {
  readonly most: number;
  readonly longestBytes: number;
  readonly from?: string;
  readonly skip?: number;
}

const script = new Script('read-shared');

/** Reads members that have not expired by the clock of Redis. */
export async function readShared(client: RedisClient, key: string, part: Part): Promise<Reading> {
  const { most, longestBytes, from = '', skip = 0 } = part;
  const sentMs = performance.now();
  const reply = await runScript(client, script, [key], [from, skip, most, longestBytes]);
  const answeredMs = performance.now();
  const [nowMs, found, leftOut, nextFrom, nextSkip, ...members] = Array.isArray(reply) ? reply : [];
  return {
    nowMs: Number(nowMs),
    sentMs,
    answeredMs,
    members: members.map(String),
    found: Number(found),
    leftOut: Number(leftOut),
    next: { from: String(nextFrom), skip: Number(nextSkip) },
  };
}

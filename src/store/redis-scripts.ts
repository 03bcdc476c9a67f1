import { readFileSync } from 'node:fs';
import type { Cluster, Redis, Result } from 'ioredis';
import { reasonOf } from './redis-failures.ts';
import type { BucketState, Charge, Decision } from './store.ts';

type Argument = string | number;
/** Decisions one after the other: see the header of each script. */
type Reply = readonly (number | string)[];

declare module 'ioredis' {
  interface RedisCommander<Context> {
    weirCharge(keyCount: number, ...keysAndArguments: Argument[]): Result<Reply, Context>;
    weirPeek(keyCount: number, ...keysAndArguments: Argument[]): Result<Reply, Context>;
  }
}

const US_PER_SECOND = 1_000_000;
/** A key outlives its window by half: more than the slot that its newest entry may still grow for. */
const LIFE_MS_PER_WINDOW_SECOND = 1500;
/** The scripts read Redis TIME when they are told no other time. */
const STORE_CLOCK = 0;

export type RedisClient = Redis | Cluster;

/** Teaches a client the two scripts of `lua/`. Only their digests travel once a connection has seen them. */
export function defineScripts(client: RedisClient): void {
  client.defineCommand('weirCharge', { lua: source('charge') });
  client.defineCommand('weirPeek', { lua: source('peek') });
}

function source(name: string): string {
  return readFileSync(new URL(`../../lua/${name}.lua`, import.meta.url), 'utf8');
}

/**
 * Decides several charges in one script call, in order; rejects when Redis answers with an error, and then none was
 * counted. All their keys must be in one Cluster slot. `nowUs` is a clock for tests.
 */
export async function runCharge(
  client: RedisClient,
  charges: readonly Charge[],
  nowUs = STORE_CLOCK,
): Promise<readonly Decision[]> {
  const keys: Argument[] = [];
  const args: Argument[] = [nowUs];
  for (const { buckets, cost, windowSeconds } of charges) {
    args.push(windowSeconds * US_PER_SECOND, windowSeconds * LIFE_MS_PER_WINDOW_SECOND, cost, buckets.length);
    for (const { key, limit, shadow } of buckets) {
      keys.push(key);
      args.push(shadow === true ? -limit : limit);
    }
  }
  const reply = await client.weirCharge(keys.length, ...keys, ...args);
  return readDecisions(reply, charges);
}

/** What `runCharge` would decide for this one charge, without spending anything. */
export async function runPeek(client: RedisClient, charge: Charge, nowUs = STORE_CLOCK): Promise<Decision> {
  const keys = charge.buckets.map(({ key }) => key);
  const limits = charge.buckets.map(({ limit, shadow }) => (shadow === true ? -limit : limit));
  const windowUs = charge.windowSeconds * US_PER_SECOND;
  const reply = await client.weirPeek(keys.length, ...keys, nowUs, windowUs, charge.cost, ...limits);
  const [decision] = readDecisions(reply, [charge]);
  return decision ?? { outcome: 'uncounted', reason: 'error' };
}

function readDecisions(reply: Reply, charges: readonly Charge[]): Decision[] {
  const decisions: Decision[] = [];
  let position = 0;
  for (const { buckets } of charges) {
    const head = reply[position++];
    if (typeof head === 'number') {
      decisions.push({
        outcome: head === 1 ? 'admitted' : 'denied',
        buckets: readStates(reply, position, buckets.length),
      });
      position += 3 * buckets.length;
    } else {
      decisions.push({ outcome: 'uncounted', reason: reasonOf(String(head)) });
    }
  }
  return decisions;
}

function readStates(reply: Reply, start: number, count: number): BucketState[] {
  const states: BucketState[] = [];
  for (let position = start; states.length < count; position += 3) {
    states.push({
      remaining: Number(reply[position]),
      resetAfterUs: Number(reply[position + 1]),
      retryAfterUs: Number(reply[position + 2]),
    });
  }
  return states;
}

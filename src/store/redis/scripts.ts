import type { Cluster, Redis } from 'ioredis';
import { type BucketState, type Charge, costIn, type Decision } from '../store.ts';
import { reasonOf } from './connection/failures.ts';
import { bulkNumber, bulkString, isUnknown, Script, ScriptCall } from './script-call.ts';

/** A key outlives its window by half: more than the slot that its newest entry may still grow for. */
const LIFE_MS_PER_WINDOW_SECOND = 1500;
/** The script reads Redis TIME when it is given no other time, and keys live as long as their buckets say. */
const STORE_CLOCK = 0;
const USUAL_LIFE = 0;

/** What lua/charge.lua does. */
const PEEK = 0;
const CHARGE = 1;
const CHARGE_AND_CHECK_LIVES = 2;

/** The life of its key, which is one and a half windows, what the charge costs it, and its limit. */
const ARGUMENTS_PER_BUCKET = 3;

/** The reply of lua/charge.lua. */
const PROBLEM = 2;
const ADMITTED = 1;
const STATE_BYTES = 16;

const charge = new Script('charge');

export type RedisClient = Redis | Cluster;

export interface ScriptOptions {
  /** The Cluster slot of all keys; any number elsewhere. */
  readonly slot: number;
  /** False to decide the same without spending. */
  readonly isSpending: boolean;
  /** True where another window may have given a key a shorter life than its bucket's. */
  readonly isCheckingLives?: boolean | undefined;
  /** A clock for tests. */
  readonly nowUs?: number;
  /** Life of a written key, for tests whose clock is slower than that of Redis; by default one and a half windows. */
  readonly lifeMs?: number | undefined;
}

/** Called once: with a decision for each charge, or with the error for which none was counted or none is known. */
export type Decided = (error: Error | undefined, decisions: readonly Decision[]) => void;

/** Decides several charges in one script call, in order. All their keys must be in one Cluster slot. */
export function sendCharges(
  client: RedisClient,
  charges: readonly Charge[],
  options: ScriptOptions,
  decided: Decided,
): void {
  let keyCount = 0;
  let argumentCount = 3;
  let keys = '';
  let args = bulkNumber(options.nowUs ?? STORE_CLOCK) + bulkNumber(modeOf(options));
  args += bulkNumber(options.lifeMs ?? USUAL_LIFE);
  for (const { buckets, cost } of charges) {
    args += bulkNumber(buckets.length);
    argumentCount += 1 + ARGUMENTS_PER_BUCKET * buckets.length;
    keyCount += buckets.length;
    for (const bucket of buckets) {
      const { key, limit, windowSeconds, shadow } = bucket;
      keys += bulkString(key);
      args += bulkNumber(LIFE_MS_PER_WINDOW_SECOND * windowSeconds) + bulkNumber(costIn(bucket, cost));
      args += bulkNumber(shadow === true ? -limit : limit);
    }
  }
  const body = bulkNumber(keyCount) + keys + args;
  const send = (isLastTry: boolean): void => {
    const call = new ScriptCall(charge, options.slot, 1 + keyCount + argumentCount, body, (error, reply) => {
      // Nothing ran: the next call sends the whole script.
      if (error !== undefined && isUnknown(error) && !isLastTry) send(true);
      else if (error !== undefined) decided(error, []);
      else readReply(reply, charges, decided);
    });
    client.sendCommand(call);
  };
  send(false);
}

function modeOf({ isSpending, isCheckingLives }: ScriptOptions): number {
  if (!isSpending) return PEEK;
  return isCheckingLives === true ? CHARGE_AND_CHECK_LIVES : CHARGE;
}

function readReply(reply: Buffer, charges: readonly Charge[], decided: Decided): void {
  let decisions: readonly Decision[];
  try {
    decisions = readDecisions(reply, charges);
  } catch (error) {
    decided(error instanceof Error ? error : new Error(String(error)), []);
    return;
  }
  decided(undefined, decisions);
}

function readDecisions(reply: Buffer, charges: readonly Charge[]): Decision[] {
  const decisions: Decision[] = [];
  let position = 0;
  for (const { buckets } of charges) {
    const head = reply.readUInt8(position);
    position += 1;
    if (head === PROBLEM) {
      const end = position + 2 + reply.readUInt16BE(position);
      const message = reply.toString('utf8', position + 2, end);
      decisions.push({ outcome: 'uncounted', reason: reasonOf(message) });
      position = end;
    } else {
      const states = readStates(reply, position, buckets.length);
      decisions.push({ outcome: head === ADMITTED ? 'admitted' : 'denied', buckets: states });
      position += STATE_BYTES * buckets.length;
    }
  }
  return decisions;
}

function readStates(reply: Buffer, start: number, count: number): BucketState[] {
  const states: BucketState[] = [];
  for (let position = start; states.length < count; position += STATE_BYTES) {
    states.push({
      remaining: reply.readUInt32BE(position),
      resetAfterUs: reply.readUIntBE(position + 4, 6),
      retryAfterUs: reply.readUIntBE(position + 10, 6),
    });
  }
  return states;
}

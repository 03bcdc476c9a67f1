import type { Cluster, Redis } from 'ioredis';
import { isConcurrent, slotState } from '../in-flight/held-slots.ts';
import type { BucketCharge, BucketState, Charge, Decision } from '../store.ts';
import { type BodyOptions, ChargeBody } from './charge-body.ts';
import { reasonOf } from './connection/failures.ts';
import { isUnknown, Script, ScriptCall } from './script-call.ts';

/** The reply of lua/charge.lua. */
const PROBLEM = 2;
const ADMITTED = 1;
const STATE_BYTES = 16;
const SLOT_BYTES = 5;

const charge = new Script('charge');

export type RedisClient = Redis | Cluster;

export interface ScriptOptions extends BodyOptions {
  /** The Cluster slot of all keys; any number elsewhere. */
  readonly slot: number;
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
  const { text, argumentCount } = new ChargeBody(charges, options);
  const send = (isLastTry: boolean): void => {
    const call = new ScriptCall(charge, options.slot, argumentCount, text, (error, reply) => {
      // Nothing ran: the next call sends the whole script.
      if (error !== undefined && isUnknown(error) && !isLastTry) send(true);
      else if (error !== undefined) decided(error, []);
      else readReply(reply, charges, decided);
    });
    client.sendCommand(call);
  };
  send(false);
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
      const states = readStates(reply, position, buckets);
      decisions.push({ outcome: head === ADMITTED ? 'admitted' : 'denied', buckets: states });
      position += bytesOf(buckets);
    }
  }
  return decisions;
}

function bytesOf(buckets: readonly BucketCharge[]): number {
  let bytes = 0;
  for (const bucket of buckets) bytes += isConcurrent(bucket) ? SLOT_BYTES : STATE_BYTES;
  return bytes;
}

/** The states in the order of the buckets. The script's are in that of its arguments: slots come last. */
function readStates(reply: Buffer, start: number, buckets: readonly BucketCharge[]): BucketState[] {
  let position = start;
  let slotPosition = start;
  for (const bucket of buckets) if (!isConcurrent(bucket)) slotPosition += STATE_BYTES;
  const states: BucketState[] = [];
  for (const bucket of buckets) {
    if (isConcurrent(bucket)) {
      states.push(slotState(reply.readUInt32BE(slotPosition), reply.readUInt8(slotPosition + 4) === 1));
      slotPosition += SLOT_BYTES;
    } else {
      states.push({
        remaining: reply.readUInt32BE(position),
        resetAfterUs: reply.readUIntBE(position + 4, 6),
        retryAfterUs: reply.readUIntBE(position + 10, 6),
      });
      position += STATE_BYTES;
    }
  }
  return states;
}

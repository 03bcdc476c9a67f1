import type { Callback } from 'ioredis';
import { slotState } from '../in-flight/held-slots.ts';
import {
  type BucketCharge,
  type BucketState,
  type Charge,
  type Decision,
  type Holder,
  isConcurrent,
} from '../store.ts';
import { type ChargeOptions, chargeArguments } from './charge-arguments.ts';
import { reasonOf } from './connection/redis-failures.ts';
import { CHARGE, type RedisClient } from './scripts.ts';

/** The reply of lua/charge.lua. */
const PROBLEM = 2;
const ADMITTED = 1;
const STATE_BYTES = 16;
const PERIOD_STATE_BYTES = 19;
const SLOT_BYTES = 5;
export const TIME_BYTES = 7;
const COUNT_BYTES = 2;
const LEASE_BYTES = 33;
const REPLICA_BYTES = 16;
const HELD_START = 22;

/** Called once: with a decision for each charge, or with the error for which none was counted or none is known. */
type DecisionsCallback = (error: Error | undefined, decisions: readonly Decision[]) => void;

/** Decides several charges in one script call, in order. All their keys must be in one Cluster slot. */
export function sendCharges(
  client: RedisClient,
  charges: readonly Charge[],
  options: ChargeOptions,
  decided: DecisionsCallback,
): void {
  const args = chargeArguments(charges, options);
  const answered: Callback = (error, reply) => {
    if (error || !Buffer.isBuffer(reply)) decided(error ?? new TypeError('the script returned no text'), []);
    else readReply(reply, charges, options, decided);
  };
  void client.chargeBuffer(args, (error, reply) => {
    // Nothing ran: Redis has forgotten its scripts again before it got ioredis's repetition, which may be as short as the call.
    if (error?.message.startsWith('NOSCRIPT')) void client.callBuffer('EVAL', [CHARGE, ...args], answered);
    else answered(error, reply);
  });
}

function readReply(
  reply: Buffer,
  charges: readonly Charge[],
  options: ChargeOptions,
  decided: DecisionsCallback,
): void {
  let decisions: readonly Decision[];
  try {
    decisions = readDecisions(reply, charges, options);
  } catch (error) {
    decided(error instanceof Error ? error : new Error(String(error)), []);
    return;
  }
  decided(undefined, decisions);
}

function readDecisions(
  reply: Buffer,
  charges: readonly Charge[],
  { isSpending, clock }: ChargeOptions,
): Decision[] {
  const decisions: Decision[] = [];
  const chargedAtUs = readSevenBytes(reply, reply.length - TIME_BYTES);
  let position = 0;
  for (const { buckets } of charges) {
    const head = reply.readUInt8(position);
    position += 1;
    if (head === PROBLEM) {
      const end = position + 2 + reply.readUInt16BE(position);
      const message = reply.toString('utf8', position + 2, end);
      const reason = reasonOf(message);
      if (reason === 'clock') clock?.learn(message);
      decisions.push({ outcome: 'uncounted', reason, problem: message });
      position = end;
    } else {
      const states: BucketState[] = [];
      position = readStates(reply, position, buckets, isSpending, states);
      decisions.push(
        head === ADMITTED
          ? { outcome: 'admitted', buckets: states, chargedAtUs }
          : { outcome: 'denied', buckets: states },
      );
    }
  }
  return decisions;
}

/** Adds the states in the order of the buckets, and returns where they end. In the reply, windows come first, and slots last. */
function readStates(
  reply: Buffer,
  start: number,
  buckets: readonly BucketCharge[],
  isSpending: boolean,
  states: BucketState[],
): number {
  let position = start;
  let periodPosition = start + STATE_BYTES * countOf(buckets, isOfWindow);
  let slotPosition = periodPosition + PERIOD_STATE_BYTES * countOf(buckets, isOfPeriod);
  for (const bucket of buckets) {
    if (isOfWindow(bucket)) {
      states.push(readWindowState(reply, position));
      position += STATE_BYTES;
    } else if (isOfPeriod(bucket)) {
      states.push(readPeriodState(reply, periodPosition));
      periodPosition += PERIOD_STATE_BYTES;
    } else {
      const hasRoom = reply.readUInt8(slotPosition + 4) === 1;
      const holders = isSpending ? undefined : readHolders(reply, slotPosition + SLOT_BYTES);
      states.push(slotState(reply.readUInt32BE(slotPosition), hasRoom, holders));
      slotPosition += SLOT_BYTES + bytesOf(holders);
    }
  }
  return slotPosition;
}

function isOfPeriod({ calendar }: BucketCharge): boolean {
  return calendar !== undefined;
}

/** Whether the bucket counts points of a sliding window. */
export function isOfWindow(bucket: BucketCharge): boolean {
  return bucket.calendar === undefined && !isConcurrent(bucket);
}

function countOf(buckets: readonly BucketCharge[], isMeant: (bucket: BucketCharge) => boolean): number {
  let count = 0;
  for (const bucket of buckets) if (isMeant(bucket)) count += 1;
  return count;
}

function readWindowState(reply: Buffer, position: number): BucketState {
  return {
    remaining: reply.readUInt32BE(position),
    resetAfterUs: reply.readUIntBE(position + 4, 6),
    retryAfterUs: reply.readUIntBE(position + 10, 6),
  };
}

/** In two parts, as Node reads at most 6. */
export function readSevenBytes(reply: Buffer, position: number): number {
  return reply.readUInt8(position) * 2 ** 48 + reply.readUIntBE(position + 1, 6);
}

function readPeriodState(reply: Buffer, position: number): BucketState {
  return {
    remaining: readSevenBytes(reply, position),
    resetAfterUs: reply.readUIntBE(position + 7, 6),
    retryAfterUs: reply.readUIntBE(position + 13, 6),
  };
}

function bytesOf(holders: readonly Holder[] | undefined): number {
  return holders === undefined ? 0 : COUNT_BYTES + LEASE_BYTES * holders.length;
}

/** The leases of one key: see lua/README.md. */
function readHolders(reply: Buffer, start: number): Holder[] {
  const entries = start + COUNT_BYTES;
  return Array.from({ length: reply.readUInt16BE(start) }, (_, index) => {
    const entry = entries + index * LEASE_BYTES;
    return {
      replica: reply.toString('latin1', entry, entry + REPLICA_BYTES),
      slots: reply.readUInt32BE(entry + HELD_START),
    };
  });
}

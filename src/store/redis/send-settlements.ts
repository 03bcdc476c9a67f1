import { settledKey } from '../keys.ts';
import {
  type BucketCharge,
  costIn,
  finalCostIn,
  isConcurrent,
  isDurable,
  type Settled,
  type SettledState,
  type Settlement,
} from '../store.ts';
import { LIFE_MS_PER_WINDOW_SECOND, type Mark, signOf, spanText } from './charge-arguments.ts';
import { PeriodClock } from './period-clock.ts';
import { type RedisClient, SETTLE } from './scripts.ts';
import { isOfWindow, readSevenBytes, TIME_BYTES } from './send-charges.ts';

/** The first byte of a reply of lua/settle.lua. */
const OUTCOMES = ['already', 'settled', 'ended', 'missing', 'moved', 'repeated'] as const;
const STATE_BYTES = 14;
const PERIOD_STATE_BYTES = 20;

/** Undefined where counts are being put back. */
type Answer = Settled | 'moved' | undefined;

interface SettleOptions {
  /** How long a settlement may be sent again. */
  readonly markedMs: number;
  /**
   * For each settlement a text of at most 40 letters, digits, `_` and `-`, which only its repetitions have as well: if the answer to one of
   * them was lost, the next one is answered `settled`. By default, it is `already`.
   */
  readonly nonces?: readonly string[] | undefined;
  /** For buckets of periods. A settlement that names other periods than the present ones teaches it. */
  readonly clock?: PeriodClock | undefined;
  /** With a journal, as for charges. */
  readonly mark?: Mark | undefined;
  /** A clock, and a life of written keys, for tests. */
  readonly nowUs?: number;
  readonly lifeMs?: number | undefined;
}

/**
 * Applies settlements in one script call, in order. All their keys must be in one Cluster slot. Returns undefined for a settlement that was
 * not applied, because its counts are being put back. Where Redis is in other periods than the clock, it is asked once more. Rejects with
 * the error of Redis or of its connection.
 */
export async function sendSettlements(
  client: RedisClient,
  settlements: readonly Settlement[],
  options: SettleOptions,
): Promise<readonly (Settled | undefined)[]> {
  const { nowUs = 0 } = options;
  const { clock = new PeriodClock(nowUs === 0 ? Date.now : () => nowUs / 1000) } = options;
  const answers = await send(client, settlements, options, clock);
  const isMoved = (_: unknown, index: number) => answers[index] === 'moved';
  const moved = settlements.filter(isMoved);
  const nonces = options.nonces?.filter(isMoved);
  const again = moved.length === 0 ? [] : await send(client, moved, { ...options, nonces }, clock);
  const known = (answer: Answer) => (answer === 'moved' ? undefined : answer);
  return answers.map((answer) => known(answer === 'moved' ? again.shift() : answer));
}

async function send(
  client: RedisClient,
  settlements: readonly Settlement[],
  options: SettleOptions,
  clock: PeriodClock,
): Promise<Answer[]> {
  const args = settleArguments(settlements, options, clock.nowMs());
  const reply = await client.settleBuffer(args).catch((error: unknown) => {
    // As for charges: nothing ran.
    if (!(error instanceof Error) || !error.message.startsWith('NOSCRIPT')) throw error;
    return client.callBuffer('EVAL', [SETTLE, ...args]);
  });
  if (!Buffer.isBuffer(reply)) throw new TypeError('the script returned no text');
  return readSettled(reply, settlements, clock);
}

function settleArguments(
  settlements: readonly Settlement[],
  { markedMs, nonces, nowUs = 0, lifeMs = 0, mark }: SettleOptions,
  unixMs: number,
): (string | number)[] {
  const isMarked = mark !== undefined && settlements.some(({ charge }) => isDurable(charge.buckets));
  const keys: string[] = isMarked ? [mark.key] : [];
  const texts: string[] = [];
  for (const [index, settlement] of settlements.entries()) {
    const { charge, chargedAtUs = 0, id, endsAtUs = 0 } = settlement;
    const { buckets, heldMs } = charge;
    const windows = buckets.filter(isOfWindow);
    const periods = buckets.filter(({ calendar }) => calendar !== undefined);
    const slots = heldMs === undefined ? [] : buckets.filter(isConcurrent);
    keys.push(settledKey(buckets[0]?.key ?? '', id));
    for (const { key } of [...windows, ...periods, ...slots]) keys.push(key);
    const bucketTexts = [
      ...windows.map((bucket) => textOf(bucket, settlement)),
      ...periods.map((bucket) => periodTextOf(bucket, unixMs, settlement)),
      ...slots.map(() => `#${heldMs}`),
    ];
    texts.push(`${chargedAtUs} ${markedMs} ${endsAtUs} ${nonces?.[index] ?? ''}${bucketTexts.join('')}`);
  }
  return [keys.length, ...keys, `${nowUs} ${lifeMs}${isMarked ? ` ${mark.expected}` : ''}`, ...texts];
}

function textOf(bucket: BucketCharge, settlement: Settlement): string {
  const cost = costIn(bucket, settlement.charge.cost);
  const final = finalCostIn(bucket, settlement);
  return `,${LIFE_MS_PER_WINDOW_SECOND * bucket.windowSeconds} ${cost} ${final} ${bucket.limit}${signOf(bucket)}`;
}

function periodTextOf(bucket: BucketCharge, unixMs: number, settlement: Settlement): string {
  const span = bucket.calendar?.around(unixMs);
  const cost = costIn(bucket, settlement.charge.cost);
  return span === undefined
    ? ''
    : `;${spanText(span)} ${cost} ${finalCostIn(bucket, settlement)} ${bucket.limit}${signOf(bucket)}`;
}

function readSettled(reply: Buffer, settlements: readonly Settlement[], clock: PeriodClock): Answer[] {
  let position = 0;
  return settlements.map(({ charge }) => {
    const outcome = outcomeOf(reply.readUInt8(position++));
    if (outcome === 'moved') {
      // The time of Redis follows.
      clock.set(readSevenBytes(reply, position));
      position += TIME_BYTES;
    }
    const buckets: (SettledState | undefined)[] = charge.buckets.map((bucket) => {
      if (!isOfWindow(bucket) || reply.readUInt8(position++) === 0) return undefined;
      const state = {
        remaining: reply.readUInt32BE(position),
        resetAfterUs: reply.readUIntBE(position + 4, 6),
        overPoints: reply.readUInt32BE(position + 10),
      };
      position += STATE_BYTES;
      return state;
    });
    for (const [index, { calendar }] of charge.buckets.entries()) {
      if (calendar === undefined || reply.readUInt8(position++) === 0) continue;
      buckets[index] = {
        remaining: readSevenBytes(reply, position),
        resetAfterUs: reply.readUIntBE(position + 7, 6),
        overPoints: readSevenBytes(reply, position + 13),
      };
      position += PERIOD_STATE_BYTES;
    }
    return answerOf(outcome, buckets);
  });
}

function outcomeOf(byte: number): (typeof OUTCOMES)[number] {
  const outcome = OUTCOMES[byte];
  if (outcome === undefined) throw new TypeError('the script returned an unknown outcome');
  return outcome;
}

function answerOf(outcome: (typeof OUTCOMES)[number], buckets: (SettledState | undefined)[]): Answer {
  if (outcome === 'moved') return outcome;
  if (outcome === 'missing') return undefined;
  return { outcome: outcome === 'repeated' ? 'settled' : outcome, buckets };
}

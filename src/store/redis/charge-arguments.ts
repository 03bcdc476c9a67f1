import type { Calendar, Span } from '../../domain/limits/calendar.ts';
import { pace } from '../../domain/pace.ts';
import type { LeaseCall } from '../in-flight/leases.ts';
import type { Statement } from '../in-flight/renewals.ts';
import { type BucketCharge, type Charge, costIn, isConcurrent, isDurable } from '../store.ts';
import type { PeriodClock } from './period-clock.ts';

/** A key outlives its window by half: more than the slot that its newest entry may still grow for. */
export const LIFE_MS_PER_WINDOW_SECOND = 1500;
/** The script then reads Redis TIME, and each key gets the life that its bucket states. */
const STORE_CLOCK = 0;
const USUAL_LIFE = 0;
const MS_PER_SECOND = 1_000;

/** What lua/charge.lua does. */
const PEEK = 0;
const CHARGE = 1;
const CHARGE_AND_CHECK_LIVES = 2;
const PERIODS = ' 1';
const CHARGE_WITH_PERIODS = '1p';

export interface ChargeOptions {
  /** False to decide the same without spending. */
  readonly isSpending: boolean;
  /** True where another window may have given a key a shorter life than its bucket's. */
  readonly isCheckingLives?: boolean | undefined;
  /** What this replica states of its slots; undefined without slots. A peek states nothing. */
  readonly leases?: LeaseCall | undefined;
  /** Unix time by the clock of Redis, as far as it is known, for buckets of periods. */
  readonly unixMs?: number | undefined;
  /** Learns from Redis which time it is, if the call named the wrong periods. */
  readonly clock?: PeriodClock | undefined;
  /** Of a peek: the key of the replicas that are alive. */
  readonly aliveKey?: string | undefined;
  /** With a journal: what shows whether the durable counts of this Redis are complete. */
  readonly mark?: Mark | undefined;
  /** A clock for tests. */
  readonly nowUs?: number;
  /** Life of a written key, for tests whose clock is slower than Redis's; by default one and a half windows. */
  readonly lifeMs?: number | undefined;
}

/** The mark of lua/mark.lua, in the Cluster slot of the charges. */
export interface Mark {
  readonly key: string;
  /** What it has if the counts are complete. */
  readonly expected: string;
}

const NOBODY: LeaseCall = { replica: '-'.repeat(16), aliveKey: '', asked: [], stated: [] };
const NO_STATEMENT = ',0 0 0';

/** The arguments of one call of lua/charge.lua: the number of keys, the keys, then the texts. */
export function chargeArguments(charges: readonly Charge[], options: ChargeOptions): (string | number)[] {
  const { nowUs = STORE_CLOCK, leases = NOBODY, aliveKey = leases.aliveKey } = options;
  const { unixMs = nowUs === STORE_CLOCK ? Date.now() : nowUs / 1000 } = options;
  const packed = charges.map((charge) => packedOf(charge, unixMs));
  const arePeriods = packed.some(({ periods }) => periods.length > 0);
  const mark = packed.some(({ isDurable }) => isDurable) ? options.mark : undefined;
  const args: (string | number)[] = mark === undefined ? [0] : [0, mark.key];
  const first = args.length;
  for (const [index, { windowsAndPeriods }] of packed.entries())
    addKeys(charges[index], windowsAndPeriods, args);
  const buckets = args.length - first;
  for (const [index, { slots }] of packed.entries()) addKeys(charges[index], slots, args);
  const asked = args.length - first - buckets;
  for (const { lease } of leases.stated) args.push(lease.key);
  const slots = asked + leases.stated.length;
  if (slots > 0) args.push(aliveKey);
  args[0] = args.length - 1;
  args.push(callText(options, slots, lastNumbers(arePeriods, mark)));
  if (slots > 0) args.push(statementsOf(leases, asked));
  addTexts(packed, arePeriods, args);
  return args;
}

/** The mode alone if all else is usual, or 1p: Redis reads these faster. */
function callText(options: ChargeOptions, slots: number, last: string): string | number {
  const { nowUs = STORE_CLOCK, lifeMs = USUAL_LIFE } = options;
  const mode = modeOf(options);
  if (nowUs === STORE_CLOCK && lifeMs === USUAL_LIFE && slots === 0) {
    if (last === '') return mode;
    if (last === PERIODS && mode === CHARGE) return CHARGE_WITH_PERIODS;
  }
  return `${nowUs} ${mode} ${lifeMs} ${slots}${last}`;
}

function lastNumbers(arePeriods: boolean, mark: Mark | undefined): string {
  if (mark !== undefined) return ` ${arePeriods ? 1 : 0} ${mark.expected}`;
  return arePeriods ? PERIODS : '';
}

function addKeys(charge: Charge | undefined, indexes: readonly number[], args: (string | number)[]): void {
  for (const index of indexes) {
    const bucket = charge?.buckets[index];
    if (bucket !== undefined) args.push(bucket.key);
  }
}

function addTexts(packed: readonly PackedCharge[], arePeriods: boolean, args: (string | number)[]): void {
  for (const { text, periodText } of packed) {
    args.push(text);
    if (arePeriods) args.push(periodText);
  }
}

/** What a replica states of the slots that charges ask for, and of further ones. */
function statementsOf({ replica, asked, stated }: LeaseCall, askedCount: number): string {
  let text = `${replica} ${pace.leaseMs} ${pace.slotKeyMs}`;
  for (let index = 0; index < askedCount; index++) text += statementOf(asked[index]);
  for (const statement of stated) text += statementOf(statement);
  return text;
}

function statementOf(statement: Statement | undefined): string {
  if (statement === undefined) return NO_STATEMENT;
  return `,${statement.generation} ${statement.held} ${statement.ended}`;
}

/** What a charge says, but for its keys. */
interface PackedCharge {
  /** The buckets in the order of their keys. */
  readonly windowsAndPeriods: readonly number[];
  readonly slots: readonly number[];
  /** What the text says of the calendar. */
  readonly periods: readonly { readonly calendar: Calendar; readonly span: Span }[];
  readonly text: string;
  readonly periodText: string;
  readonly isDurable: boolean;
}

/** By kind, cost and time. Packing a charge anew takes 4 µs. */
const packedCharges = new WeakMap<object, Map<number | string, PackedCharge>>();

/** Costs and times of a kind that are kept. Those that a request's body states may be any. */
const MOST_COSTS = 32;

function packedOf(charge: Charge, unixMs: number): PackedCharge {
  const { buckets, kind = buckets, cost, heldMs } = charge;
  let ofKind = packedCharges.get(kind);
  if (ofKind === undefined) {
    ofKind = new Map();
    packedCharges.set(kind, ofKind);
  }
  const stated = heldMs === undefined ? cost : `${cost}~${heldMs}`;
  const last = ofKind.get(stated);
  if (last !== undefined && arePresent(last, unixMs)) return last;
  if (ofKind.size >= MOST_COSTS) ofKind.clear();
  const packed = pack(charge, unixMs);
  ofKind.set(stated, packed);
  return packed;
}

function pack({ buckets, cost, heldMs }: Charge, unixMs: number): PackedCharge {
  const indexed = buckets.map((bucket, index) => ({ bucket, index }));
  const windows = indexed.filter(({ bucket }) => !isConcurrent(bucket) && bucket.calendar === undefined);
  const slots = indexed.filter(({ bucket }) => isConcurrent(bucket));
  const periods = indexed.flatMap(({ bucket, index }) => {
    const { calendar } = bucket;
    return calendar === undefined ? [] : [{ bucket, index, calendar, span: calendar.around(unixMs) }];
  });
  return {
    windowsAndPeriods: [...windows, ...periods].map(({ index }) => index),
    slots: slots.map(({ index }) => index),
    periods,
    text: [
      ...windows.map(
        ({ bucket }) =>
          `${LIFE_MS_PER_WINDOW_SECOND * bucket.windowSeconds} ${costIn(bucket, cost)} ${limitOf(bucket)}${signOf(bucket)}`,
      ),
      ...slots.map(({ bucket }) => `#${limitOf(bucket)}${heldMs === undefined ? '' : `~${heldMs}`}`),
    ].join(' '),
    isDurable: isDurable(buckets),
    periodText: periods.map(({ bucket, span }) => periodTextOf(bucket, cost, span)).join(' '),
  };
}

function arePresent({ periods }: PackedCharge, unixMs: number): boolean {
  for (const { calendar, span } of periods) if (calendar.around(unixMs) !== span) return false;
  return true;
}

function periodTextOf(bucket: BucketCharge, cost: number, span: Span): string {
  return `${spanText(span)} ${costIn(bucket, cost)} ${limitOf(bucket)}${signOf(bucket)}`;
}

/** Whether it is durable. */
export function signOf({ record }: BucketCharge): string {
  return record === undefined ? '' : '!';
}

/** A pair of periods, as the scripts read it: lengths, because Redis reads fewer digits faster. */
export function spanText({ startMs, endMs, nextEndMs }: Span): string {
  return [startMs, endMs - startMs, nextEndMs - endMs].map((ms) => ms / MS_PER_SECOND).join(' ');
}

function modeOf({ isSpending, isCheckingLives }: ChargeOptions): number {
  if (!isSpending) return PEEK;
  return isCheckingLives === true ? CHARGE_AND_CHECK_LIVES : CHARGE;
}

/** Negative for a shadow. */
function limitOf({ limit, shadow }: BucketCharge): number {
  return shadow === true ? -limit : limit;
}

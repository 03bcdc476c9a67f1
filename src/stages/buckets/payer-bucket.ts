import type { Payer } from '../../domain/caller.ts';
import { type Calendar, calendarOf, type Span, shownRule } from '../../domain/limits/calendar.ts';
import { type LimitInForce, type LimitSource, NEVER } from '../../domain/limits/limits.ts';
import { isCharged, isInPolicy, isRecorded, type LimitRow } from '../../domain/limits/rows.ts';
import type { ScopeName } from '../../domain/limits/scopes.ts';
import { scopeNamed } from '../../domain/limits/scopes.ts';
import type { Access } from '../../domain/operation.ts';
import { bucketKey, PERIOD_ENDING, SLOTS_ENDING } from '../../store/keys.ts';
import { type BucketCharge, type BucketState, recordedLimit } from '../../store/store.ts';
import { type Operation, payingAccess } from '../request-context.ts';

/** A row as it is for one owner now. */
export interface PresentRow extends LimitRow {
  /** Missing for a window. With it, `windowSeconds` is the length of the present period. */
  readonly calendar?: Calendar | undefined;
  readonly span?: Span | undefined;
}

/**
 * The row at this Unix time.
 *
 * @param startsOn the day on which the owner's months begin; undefined where that is left to the row
 */
export function presentRow(row: LimitRow, nowMs: number, startsOn: () => number | undefined): PresentRow {
  if (row.period === undefined) return row;
  const own = row.period.unit === 'month' ? startsOn() : undefined;
  const period = own === undefined ? row.period : { ...row.period, startsOn: own };
  const calendar = calendarOf(period);
  const span = calendar.at(nowMs);
  return { ...row, period, windowSeconds: Math.round((span.endMs - span.startMs) / 1_000), calendar, span };
}

/** The present period of a bucket as operators and callers see it; nothing for a window. */
export function shownPeriod({ period, span }: PresentRow) {
  if (period === undefined || span === undefined) return {};
  const [start, end] = [span.startMs, span.endMs].map((ms) => new Date(ms).toISOString());
  return { period: { ...shownRule(period), start, end } };
}

/** A bucket to charge, which is its row for one owner. */
export interface PayerBucket extends PresentRow, Omit<BucketCharge, keyof PresentRow> {
  readonly owner: string;
  /** Where its limit is set. */
  readonly source: LimitSource;
  /** The plan that sets its limit; undefined for another source. */
  readonly plan: string | undefined;
  /** Unix time until which that limit is valid; infinite if it does not expire. */
  readonly untilMs: number;
  /** The bucket that this one copies for another owner. */
  readonly alike?: PayerBucket | undefined;
}

/**
 * A bucket with all its members, in one order, so that V8 reads buckets fast, and copies of it only replace members. On Node 20, adding a
 * member to a copy made by `...` takes 4 µs, and gives each copy a hidden class of its own.
 */
export function wholeBucket(bucket: PayerBucket): {
  readonly [Name in keyof Required<PayerBucket>]: PayerBucket[Name];
} {
  return {
    name: bucket.name,
    headerName: bucket.headerName,
    scope: bucket.scope,
    owner: bucket.owner,
    key: bucket.key,
    counts: bucket.counts,
    limit: bucket.limit,
    windowSeconds: bucket.windowSeconds,
    calendar: bucket.calendar,
    record: bucket.record,
    sum: bucket.sum,
    shadow: bucket.shadow,
    cost: bucket.cost,
    selection: bucket.selection,
    isContract: bucket.isContract,
    source: bucket.source,
    plan: bucket.plan,
    untilMs: bucket.untilMs,
    period: bucket.period,
    span: bucket.span,
    durable: bucket.durable,
    alike: bucket.alike,
  };
}

/** What is left of a limit of one owner. */
export interface LimitLeft {
  /** The name of its row; `blocked` for a block. */
  readonly bucket: string;
  readonly limit: number;
  readonly windowSeconds: number;
  /** The Account, Organization, principal or address whose bucket it is, or who is blocked. */
  readonly owner: string;
  readonly remaining: number;
}

/** A limit as clients and operators see it, such as in the `extensions` of a 429 (contract section 7). */
export function namedLimit({ name, limit, windowSeconds }: PayerBucket) {
  return { bucket: name, limit, windowSeconds };
}

/** The limits in force of one bucket of one owner, live limits included. */
export interface InForce extends LimitInForce {
  /** When a limit of each source expires. */
  readonly ends: Readonly<Record<LimitSource, number>>;
  readonly plan: string | undefined;
}

/** The bucket of the limit in force, and the bucket of the shadow limit beside it. */
export function payerBucketsOf(
  row: PresentRow,
  owner: string,
  inForce: InForce,
  keyPrefix: string,
  hashTag: string,
): readonly PayerBucket[] {
  const { limit, limitSource, shadowLimit, shadowSource, ends, plan } = inForce;
  const make = (limit: number, source: LimitSource, shadow?: true) => {
    const key = bucketKey(keyPrefix, hashTag, nameInKey(row, shadow === true), owner);
    const record = isRecorded(row) && shadow === undefined ? recordedLimit(row) : undefined;
    return wholeBucket({
      ...row,
      owner,
      key,
      limit,
      source,
      plan: source === 'plan' ? plan : undefined,
      untilMs: ends[source],
      shadow,
      record,
    });
  };
  const buckets: PayerBucket[] = [];
  if (limit !== undefined) buckets.push(make(limit, limitSource));
  // A shadow bucket counts only what fits its own limit, so it needs its own key.
  if (shadowLimit !== undefined) buckets.push(make(shadowLimit, shadowSource, true));
  return buckets;
}

/** The name of a bucket in its key. */
function nameInKey({ name, counts, calendar }: PresentRow, isShadow: boolean): string {
  const own = isShadow ? `${name}-shadow` : name;
  if (counts === 'concurrent') return own + SLOTS_ENDING;
  return calendar === undefined ? own : own + PERIOD_ENDING;
}

/** Most limits have no end, and are worth no look at the clock. */
export function isValid({ validUntilMs }: { readonly validUntilMs: number }, nowMs: () => number): boolean {
  return validUntilMs === NEVER || validUntilMs > nowMs();
}

/** The same bucket of another owner, who has the same limits. */
export function bucketLike(template: PayerBucket, payer: Payer, keyPrefix: string): PayerBucket {
  const owner = scopeNamed(template.scope).ownerOf(payer) ?? '';
  const key = bucketKey(keyPrefix, payer.hashTag, nameInKey(template, template.shadow === true), owner);
  return { ...template, owner, key, alike: template.alike ?? template };
}

/**
 * Calls `visit` with each bucket whose state after a decision is known, and returns `found`. Passing `found` in saves each request a
 * closure of 100 bytes.
 */
export function forEachState<Found>(
  buckets: readonly PayerBucket[],
  states: readonly (BucketState | undefined)[],
  visit: (bucket: PayerBucket, state: BucketState, found: Found) => void,
  found: Found,
): Found {
  for (let index = 0; index < buckets.length; index++) {
    const bucket = buckets[index];
    const state = states[index];
    if (bucket !== undefined && state !== undefined) visit(bucket, state, found);
  }
  return found;
}

/** Shorter windows are over before anybody could read about them. */
const SHORTEST_SECONDS = 60;

/** A bucket that has reached a share of its limit. */
export interface Filling extends LimitLeft {
  readonly percent: 80 | 100;
  readonly scope: ScopeName;
  readonly counts: PayerBucket['counts'];
  /** How long this is not reported again: a window, or the rest of a period. */
  readonly lastsMs: number;
}

/**
 * The buckets with a window of a minute or longer that are used up to four fifths or more; undefined without any. All of a limit is used
 * when nothing is left, or when a request did not fit.
 */
export function fillingOf(
  buckets: readonly PayerBucket[],
  states: readonly (BucketState | undefined)[],
): readonly Filling[] | undefined {
  const none: { filling: Filling[] | undefined } = { filling: undefined };
  return forEachState(buckets, states, noteFilling, none).filling;
}

function noteFilling(
  bucket: PayerBucket,
  { remaining, resetAfterUs, retryAfterUs }: BucketState,
  found: { filling: Filling[] | undefined },
): void {
  if (bucket.shadow || bucket.windowSeconds < SHORTEST_SECONDS) return;
  // A fifth, in whole numbers.
  if (remaining * 5 > bucket.limit && retryAfterUs === 0) return;
  const { scope, owner, counts, calendar, windowSeconds } = bucket;
  const lastsMs = calendar === undefined ? windowSeconds * 1_000 : Math.ceil(resetAfterUs / 1_000);
  const percent = remaining === 0 || retryAfterUs > 0 ? 100 : 80;
  found.filling ??= [];
  found.filling.push({ percent, ...namedLimit(bucket), scope, owner, counts, remaining, lastsMs });
}

/** The limits that requests for some operations are charged to. */
export interface RowSet {
  readonly access: Access;
  /** Those that the RateLimit-Policy header names, which include those that are charged. */
  readonly policy: readonly LimitRow[];
  readonly charged: ReadonlySet<LimitRow>;
  /** Whether one of them counts each principal for itself. */
  readonly isPerPrincipal: boolean;
}

/** The row set of each operation. Operations with the same rows share one, so that payers have few. */
export class RowSets {
  readonly #rows: readonly LimitRow[];
  readonly #byRows = new Map<string, RowSet>();
  /** Operations come and go with their own files, and requests in progress keep the old operations. */
  readonly #byOperation = new WeakMap<Operation, RowSet>();

  constructor(rows: readonly LimitRow[]) {
    this.#rows = rows;
  }

  of(operation: Operation): RowSet {
    const known = this.#byOperation.get(operation);
    if (known !== undefined) return known;
    const set = this.#make(operation);
    this.#byOperation.set(operation, set);
    return set;
  }

  /** Every row that requests of this access can be charged to, whatever their operation. */
  whole(access: Access): RowSet {
    const rows = this.#rows.filter(({ scope }) => scopeNamed(scope).access.includes(access));
    return { access, policy: rows, charged: new Set(rows), isPerPrincipal: true };
  }

  #make(operation: Operation): RowSet {
    const isOfBoth = operation.isForBoth === true;
    const access = payingAccess(operation);
    const rows = isOfBoth ? this.#rows.map(withOwnName) : this.#rows;
    const policy = rows.filter((row) => isInPolicy(row, operation));
    const charged = policy.filter((row) => isCharged(row, operation));
    const key = [access, ...policy.map(({ name }) => name), '', ...charged.map(({ name }) => name)].join(' ');
    const known = this.#byRows.get(key);
    if (known !== undefined) return known;
    const isPerPrincipal =
      isOfBoth || charged.some(({ scope, isContract }) => !isContract && scopeNamed(scope).isPerPrincipal);
    const set = { access, policy, charged: new Set(charged), isPerPrincipal };
    this.#byRows.set(key, set);
    return set;
  }
}

/** The header names an Account's limits and a Person's alike, which would be one name twice where a request is charged to both. */
function withOwnName(row: LimitRow): LimitRow {
  return row.scope === 'person' ? { ...row, headerName: row.name } : row;
}

/**
 * Charges the requests of a log again, with other limits. It counts as the gateway does: with its bucket plans and its
 * memory store, and the time of the log as the clock.
 */
import type { Payer } from '../domain/caller.ts';
import { US_PER_SECOND } from '../domain/clock.ts';
import type { Limits } from '../domain/limits/limits.ts';
import type { LimitRow } from '../domain/limits/rows.ts';
import { Buckets, type PayerBuckets } from '../stages/buckets/buckets.ts';
import { planOfOwner } from '../stages/buckets/plans.ts';
import { onlyThose } from '../stages/buckets/rate-limit-fields.ts';
import { bucketsOfSeveral } from '../stages/buckets/several-operations.ts';
import type { Operation } from '../stages/request-context.ts';
import { MemoryStore } from '../store/memory-store.ts';
import { type BucketCharge, type BucketState, costIn, countedPart, type Decision } from '../store/store.ts';
import type { LogEntry } from './input/entry.ts';
import { type BucketStats, REQUEST_COLUMNS } from './measure/bucket-stats.ts';
import { Series } from './measure/series.ts';
import { bindLimits, type MeasuredPayer, PayerBook, replayedRows } from './payers.ts';
import { RetryQueue } from './retry-queue.ts';

/**
 * The assumption about refused clients. `none`: each line is a request of its own. `drop`: requests that the log's limits
 * refused were repeated later, so those lines are left out. `after`: as `drop`, and requests that the replay refuses are
 * repeated after their Retry-After.
 */
export type Retries = 'none' | 'drop' | 'after';

/** With `after`, a client gives up after this many refusals. */
export const MOST_TRIES = 4;

/** Enough for a chart of the whole log. */
const TOTAL_BINS = 240;

/** Charges requests of a log to a store whose clock is the log's. */
export class Charger {
  readonly #nowUs: () => number;
  readonly #store: MemoryStore;
  #settled = 0;

  constructor(nowUs: () => number) {
    this.#nowUs = nowUs;
    this.#store = new MemoryStore(nowUs);
  }

  /** A request is settled at once: what it has not cost of its reservation is returned, and more is added, above the limit if it must be. */
  charge(buckets: readonly BucketCharge[], cost: number, reserved: number): Decision {
    const charge = { buckets, cost: reserved };
    const decision = this.#store.charge(charge);
    if (decision.outcome === 'admitted' && reserved !== cost) {
      this.#settled += 1;
      const id = String(this.#settled);
      const counted = countedPart(charge, decision.buckets);
      this.#store.settle({ charge: counted, chargedAtUs: this.#nowUs(), cost, refundsRequests: false, id });
    }
    return decision;
  }
}

export class Replay {
  requests = 0;
  /** Requests of the log that the assumption about retries leaves out. */
  dropped = 0;
  /** Tries that the assumption about retries adds. */
  retries = 0;
  gaveUp = 0;
  /** Requests that were charged out of order, because their line came too late. */
  late = 0;
  readonly refused = { before: 0, after: 0 };
  /** Requests that only the replay refused, and that only the log's limits refused. */
  readonly changed = { refused: 0, admitted: 0 };
  /** Requests that cost more than the limit of a bucket, and so can never be admitted. */
  neverFits = 0;
  /** What refused requests in the log and is not replayed, such as `blocked`, with the number of requests. */
  readonly refusedElsewhere = new Map<string, number>();
  /** Accounts that were counted with the plan that the log names, because the limits assign them none. */
  readonly withLoggedPlan = new Set<string>();
  /** Whether a request costs more or less than 1 point. */
  hasOtherCosts = false;
  /** Unix times of the first and the last charge. */
  fromUs: number | undefined;
  toUs: number | undefined;
  readonly series = new Series(REQUEST_COLUMNS, US_PER_SECOND, TOTAL_BINS);
  /** The limits that are counted, and those that are left out. */
  readonly limits: Limits;
  readonly leftOut: readonly LimitRow[];
  readonly #retries: Retries;
  readonly #book: PayerBook;
  readonly #buckets: Buckets;
  readonly #charger: Charger;
  readonly #waiting = new RetryQueue<{ readonly entry: LogEntry; readonly tries: number }>();
  #nowUs = Number.NEGATIVE_INFINITY;

  /** @param hasSeries whether each bucket is recorded over time, for charts */
  constructor(limits: Limits, retries: Retries, hasSeries: boolean) {
    const rows = replayedRows(limits.rows);
    this.limits = { ...limits, rows };
    this.leftOut = limits.rows.filter((row) => !rows.includes(row));
    this.#retries = retries;
    this.#book = new PayerBook(this.limits, hasSeries);
    this.#buckets = new Buckets('replay', this.limits, () => this.#nowUs / 1000);
    this.#charger = new Charger(() => this.#nowUs);
  }

  /** The operations that the log has requests for. */
  get operations(): ReadonlySet<Operation> {
    return this.#book.operations;
  }

  get buckets(): readonly BucketStats[] {
    return this.#book.stats;
  }

  /** Charges one request of the log. Call it in the order of the charges. */
  take(entry: LogEntry): void {
    this.#retryUntil(entry.atUs);
    if (entry.atUs < this.#nowUs) this.late += 1;
    else this.#nowUs = entry.atUs;
    this.fromUs ??= this.#nowUs;
    this.toUs = this.#nowUs;
    this.series.record('logged', 1, this.#nowUs);
    if (entry.wasRefused) this.#noteRefusedBefore(entry);
    if (entry.wasRefused && this.#retries !== 'none') {
      this.dropped += 1;
      const payer = this.#book.payerOf(entry);
      // It is not charged, but a limit that would have counted it has matched a request of the log.
      this.#dueFor(payer, entry);
      for (const stats of payer.buckets) stats.noteLogged(this.#nowUs);
      return;
    }
    this.requests += 1;
    if (entry.cost !== 1) this.hasOtherCosts = true;
    const isAdmitted = this.#charge(entry, 1);
    if (isAdmitted && entry.wasRefused) this.changed.admitted += 1;
    if (!isAdmitted && !entry.wasRefused) this.changed.refused += 1;
  }

  /** Charges the remaining retries, and counts the windows that have not ended. */
  end(): void {
    this.#retryUntil(Number.POSITIVE_INFINITY);
    for (const stats of this.buckets) stats.end();
  }

  #retryUntil(nowUs: number): void {
    for (let due = this.#waiting.take(nowUs); due !== undefined; due = this.#waiting.take(nowUs)) {
      this.#nowUs = Math.max(this.#nowUs, due.atUs);
      this.retries += 1;
      this.#charge(due.value.entry, due.value.tries);
    }
  }

  #noteRefusedBefore(entry: LogEntry): void {
    this.refused.before += 1;
    this.series.record('refusedBefore', 1, this.#nowUs);
    const { buckets } = this.#book.payerOf(entry);
    const { refusedBy } = entry;
    // If the log does not name the bucket, the first one is the most likely: the Account's.
    const refusing = refusedBy === undefined ? buckets[0] : buckets.find(({ name }) => name === refusedBy);
    if (refusing === undefined && refusedBy !== undefined) {
      this.refusedElsewhere.set(refusedBy, (this.refusedElsewhere.get(refusedBy) ?? 0) + 1);
    }
    for (const stats of buckets) {
      if (stats === refusing) stats.refuseBefore(this.#nowUs);
      else stats.refusedByOther.before += 1;
    }
  }

  #charge(entry: LogEntry, tries: number): boolean {
    const payer = this.#book.payerOf(entry);
    const { cost, reserved = cost } = entry;
    const due = this.#dueFor(payer, entry);
    this.series.record('asked', 1, this.#nowUs);
    for (const stats of payer.buckets) {
      stats.ask(cost, this.#nowUs);
      if (tries === 1) stats.noteLogged(this.#nowUs);
    }
    if (due.buckets.length === 0) return true;
    const decision = this.#charger.charge(due.buckets, cost, reserved);
    if (decision.outcome === 'uncounted') throw new Error(`the store did not count: ${decision.reason}`);
    noteShadows(payer, decision.buckets);
    if (decision.outcome === 'admitted') return true;
    const waitUs = this.#noteRefused(payer, decision.buckets, reserved);
    if (this.#retries === 'after') this.#retryLater(entry, tries, waitUs);
    return false;
  }

  /** The buckets to charge, with the limits in force. */
  #dueFor(payer: MeasuredPayer, entry: LogEntry): PayerBuckets {
    const { onlyLimits, cost, reserved = cost } = entry;
    const { due: known, caller, operation } = payer;
    const isOfSeveral = operation.also !== undefined;
    if (known !== undefined && !isOfSeveral && known.validUntilMs > this.#nowUs / 1000) return known;
    const all = this.#buckets.bucketsFor(caller, operation);
    if (all.plan !== undefined && all.plan === caller.plan) this.#notePlan(caller);
    const named = onlyLimits === undefined ? all : onlyThose(all, ({ name }) => onlyLimits.includes(name));
    // The gateway refuses what has too many limits, and charges nothing.
    const due = isOfSeveral ? (bucketsOfSeveral(named, reserved) ?? { ...named, buckets: [] }) : named;
    bindLimits(payer, due);
    return due;
  }

  #notePlan({ account, organization }: Payer): void {
    if (account === undefined) return;
    const assigned = planOfOwner(this.limits, 'account', account, { organization }, this.#nowUs / 1000);
    if (assigned === undefined) this.withLoggedPlan.add(account);
  }

  /** Counts the refusal for the bucket with the longest wait, as in a 429. @returns that wait */
  #noteRefused(payer: MeasuredPayer, states: readonly (BucketState | undefined)[], cost: number): number {
    this.refused.after += 1;
    this.series.record('refusedAfter', 1, this.#nowUs);
    let longestUs = 0;
    let refusing: BucketStats | undefined;
    let isTooLow = false;
    for (const [index, state] of states.entries()) {
      const waitUs = state?.retryAfterUs ?? 0;
      const bucket = payer.due?.buckets[index];
      if (bucket?.shadow || waitUs <= longestUs) continue;
      longestUs = waitUs;
      refusing = payer.measured[index];
      isTooLow = bucket !== undefined && costIn(bucket, cost) > bucket.limit;
    }
    for (const stats of payer.buckets) {
      if (stats === refusing) stats.refuseAfter(this.#nowUs);
      else stats.refusedByOther.after += 1;
    }
    if (isTooLow) this.neverFits += 1;
    return longestUs;
  }

  #retryLater(entry: LogEntry, tries: number, waitUs: number): void {
    if (tries >= MOST_TRIES) {
      this.gaveUp += 1;
      return;
    }
    // Clients see whole seconds, rounded up.
    const retryAfterUs = Math.max(1, Math.ceil(waitUs / US_PER_SECOND)) * US_PER_SECOND;
    this.#waiting.add({ entry, tries: tries + 1 }, this.#nowUs + retryAfterUs);
  }
}

function noteShadows({ due, measured }: MeasuredPayer, states: readonly (BucketState | undefined)[]): void {
  if (due === undefined || !due.buckets.some(isShadow)) return;
  for (const [index, state] of states.entries()) {
    const stats = measured[index];
    const isFull = state !== undefined && state.retryAfterUs > 0;
    if (stats !== undefined && isFull && due.buckets[index]?.shadow) stats.shadowRefused += 1;
  }
}

function isShadow({ shadow }: { readonly shadow?: boolean | undefined }): boolean {
  return shadow === true;
}

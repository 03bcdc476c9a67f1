/** The refusals of this process that are not written yet. */
import { randomInt } from 'node:crypto';
import type { Payer } from '../../domain/caller.ts';
import { BLOCKED } from '../../facts/blocks.ts';
import type { PayerBucket } from '../../stages/buckets/payer-bucket.ts';
import { costAtAdmission, type Denied, type RequestContext } from '../../stages/request-context.ts';
import { DailyRoom } from './daily-room.ts';
import type { FillQuestion } from './fills.ts';
import { ENTRY_BYTES, HOUR_MS, hourOf, type RefusedId } from './id-index.ts';
import { type IdsByHour, PendingIds } from './pending-ids.ts';
import { type SharedRefusal, SharedRefusals } from './shared-refusals.ts';

/** Refusals and callers that wait to be written: of a flood while Redis is away. Beyond, they are only counted. */
const MOST_REFUSALS = 50_000;

/** Requests that are refused for the same reason share a refusal for a window of their bucket, within these bounds. */
const LONGEST_SHARED_MS = 60_000;
const SHORTEST_SHARED_MS = 1_000;

/**
 * Refusals and callers between two writings from which on they are a flood, and share refusals for the longest time. A refusal
 * takes about 20 µs of CPU time until it is written, so these are about a hundredth of a core.
 */
const FLOOD = 500;

/** A refusal that is to be written. */
export interface PendingRefusal extends FillQuestion {
  /** When its window ended, by `performance.now()`. `toMs` is a whole millisecond, in which several requests may have been charged. */
  readonly askedMs: number;
  readonly payer: Payer | undefined;
  /** Empty for what has none, such as OPTIONS or a path that does not exist: a blocked address gets a 429 for it. */
  readonly operation: string;
  readonly cost: number;
  readonly charged: Denied;
  /** The bucket that refused. Undefined for a block, which counts nothing. */
  readonly limited: PayerBucket | undefined;
}

/** A further caller that is refused for the same reason. */
interface PendingCaller extends RefusedId {
  /** The number of the refusal that explains it. */
  readonly of: number;
  readonly payer: Payer | undefined;
}

export interface Pending {
  readonly refusals: readonly PendingRefusal[];
  readonly callers: readonly PendingCaller[];
  readonly ids: IdsByHour;
  /** Requests that cannot be found by their ids. */
  readonly unfindable: number;
}

export class RefusalLog {
  readonly #nowMs: () => number;
  readonly #shared = new SharedRefusals();
  readonly #room = new DailyRoom();
  readonly #ids = new PendingIds();
  #refusals: PendingRefusal[] = [];
  #callers: PendingCaller[] = [];
  /** Those that were taken, and may be kept for the next time. */
  #taken = 0;
  #next = 0;
  #unfindable = 0;
  #forgotMs = 0;
  #forgetMs = 0;
  #isTight = false;
  #wasFlood = false;
  /** Of this process. */
  readonly processTag = randomInt(0x1000000);

  /** @param nowMs Unix time by the clock of Redis */
  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /** Notes a finished request if it got a 429. */
  requestFinished(context: RequestContext): void {
    const { refusal, operation, charged, requestId } = context;
    if (refusal?.status !== 429 || charged?.outcome !== 'denied') return;
    const payer = context.caller ?? context.publicClient;
    const atMs = this.#nowMs();
    const shared = this.#sharedFor(context, operation?.id ?? '', charged, atMs);
    if (shared === undefined) return;
    const number = isSameCaller(shared.payer, payer)
      ? shared.number
      : this.#furtherCaller(shared, payer, atMs);
    if (number === undefined) return;
    const isAdded = this.#ids.add(requestId, { atMs, processTag: this.processTag, number });
    if (!isAdded) this.#unfindable += 1;
  }

  /** Undefined if too many wait. */
  #sharedFor(
    context: RequestContext,
    operation: string,
    charged: Denied,
    atMs: number,
  ): SharedRefusal | undefined {
    const payer = context.caller ?? context.publicClient;
    const { bucket, owner, limit, windowSeconds } = charged;
    // A block refuses all alike, and a range of addresses has a hash tag for each of its networks.
    const hashTag = bucket === BLOCKED ? undefined : payer?.hashTag;
    const shared = this.#shared.find(operation, bucket, owner, hashTag);
    if (shared !== undefined && shared.limit === limit && isWithin(shared, atMs)) return shared;
    if (this.#isFull()) return undefined;
    const number = this.#nextNumber();
    const untilMs = this.#sharedUntil(atMs, windowSeconds);
    this.#refusals.push(this.#pending(context, charged, atMs, number));
    const news = { number, limit, fromMs: atMs, untilMs, payer };
    if (shared !== undefined) {
      this.#shared.removeCallers(shared);
      return Object.assign(shared, news);
    }
    const made = { hashTag, ...news, callers: undefined };
    this.#shared.add(operation, bucket, owner, made);
    return made;
  }

  /** Its number. Undefined if too many wait. */
  #furtherCaller(shared: SharedRefusal, payer: Payer | undefined, atMs: number): number | undefined {
    const key = `${payer?.principal?.id} ${payer?.account ?? payer?.address}`;
    const known = shared.callers?.get(key);
    if (known !== undefined) return known;
    if (this.#isFull()) return undefined;
    const number = this.#nextNumber();
    this.#shared.addCaller(shared, key, number);
    this.#callers.push({ processTag: this.processTag, number, of: shared.number, atMs, payer });
    return number;
  }

  /** Counts a request that cannot be found, if too many refusals wait. */
  #isFull(): boolean {
    const isFull = this.#taken + this.#refusals.length + this.#callers.length >= MOST_REFUSALS;
    if (isFull) this.#unfindable += 1;
    return isFull;
  }

  #nextNumber(): number {
    const number = this.#next;
    this.#next += 1;
    return number;
  }

  /** Takes what is to be written. Requests are only counted if this replica has written too much within a day. */
  take(): Pending {
    const nowMs = this.#nowMs();
    const [refusals, callers] = [this.#refusals, this.#callers];
    const ids = this.#ids.take();
    this.#refusals = [];
    this.#callers = [];
    const { written, most } = this.#room.in(hourOf(nowMs));
    // Before the room ends, refusals are shared for longer, so that it is left for ids.
    this.#isTight = written >= most / 2;
    this.#forget(nowMs);
    this.#wasFlood = refusals.length + callers.length >= FLOOD;
    const unfindable = this.#unfindable;
    this.#unfindable = 0;
    const taken = { refusals, callers, ids, unfindable };
    if (written >= most) return lost(taken);
    this.#taken = refusals.length + callers.length;
    return taken;
  }

  /** Keeps what could not be written, for the next time. What was taken before has its room again. */
  keep({ refusals, callers, ids, unfindable }: Pending): void {
    this.#taken = 0;
    this.#refusals = [...refusals, ...this.#refusals];
    this.#callers = [...callers, ...this.#callers];
    this.#unfindable += unfindable + this.#ids.keep(ids);
  }

  /** Those who were refused within the last minute are likely to be refused again. What an hour shares is kept until it ends. */
  #forget(nowMs: number): void {
    if (nowMs >= this.#forgotMs && nowMs < this.#forgetMs) return;
    this.#forgotMs = nowMs;
    this.#forgetMs = this.#isTight ? hourEndMs(nowMs) : nowMs + LONGEST_SHARED_MS;
    this.#shared.forget();
  }

  /** Refusals of different hours share nothing, so that all of an hour ends together. */
  #sharedUntil(atMs: number, windowSeconds: number): number {
    const endMs = hourEndMs(atMs);
    if (this.#isTight) return endMs;
    const windowMs = windowSeconds === 0 ? SHORTEST_SHARED_MS : windowSeconds * 1_000;
    const isFlood = this.#wasFlood || this.#refusals.length + this.#callers.length >= FLOOD;
    const sharedMs = isFlood ? LONGEST_SHARED_MS : Math.min(LONGEST_SHARED_MS, windowMs);
    return Math.min(atMs + sharedMs, endMs);
  }

  /** Counts bytes that were written. */
  written(bytes: number): void {
    this.#room.written(hourOf(this.#nowMs()), bytes);
  }

  #pending(context: RequestContext, charged: Denied, atMs: number, number: number): PendingRefusal {
    const { due, chargeAskedMs, operation } = context;
    const { bucket, owner, windowSeconds } = charged;
    const payer = context.caller ?? context.publicClient;
    const limited = due?.buckets.find(
      (one) => one.name === bucket && one.owner === owner && one.shadow !== true,
    );
    const nowMs = performance.now();
    const askedMs = chargeAskedMs ?? nowMs;
    const toMs = Math.round(atMs - (nowMs - askedMs));
    return {
      processTag: this.processTag,
      number,
      bucket,
      owner,
      hashTag: payer?.hashTag ?? '',
      atMs,
      fromMs: Math.max(0, limited?.span?.startMs ?? toMs - windowSeconds * 1_000),
      toMs,
      askedMs,
      payer,
      operation: operation?.id ?? '',
      cost: costAtAdmission(context),
      charged,
      limited,
    };
  }
}

function isWithin({ fromMs, untilMs }: SharedRefusal, atMs: number): boolean {
  return atMs >= fromMs && atMs < untilMs;
}

function hourEndMs(atMs: number): number {
  return (hourOf(atMs) + 1) * HOUR_MS;
}

/** Of refusals that are not written: their requests, which cannot be found. */
export function lost({ ids, unfindable }: Pending): Pending {
  const requests = ids.reduce((sum, [, { length }]) => sum + length / ENTRY_BYTES, 0);
  return { refusals: [], callers: [], ids: [], unfindable: unfindable + requests };
}

function isSameCaller(a: Payer | undefined, b: Payer | undefined): boolean {
  return (
    a === b ||
    (a?.principal?.id === b?.principal?.id && a?.account === b?.account && a?.address === b?.address)
  );
}

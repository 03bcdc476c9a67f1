/** The refusals of this process that are not written yet. */
import { randomInt } from 'node:crypto';
import type { Payer } from '../../domain/caller.ts';
import type { PayerBucket } from '../../stages/buckets/payer-bucket.ts';
import { costAtAdmission, type Denied, type RequestContext } from '../../stages/request-context.ts';
import type { Question } from './fills.ts';
import { ENTRY_BYTES, HOUR_MS, hourOf, writeEntry } from './id-index.ts';

/** Refusals that wait to be written, and ids of requests that do: of a flood while Redis is away. Beyond, they are only counted. */
const MOST_REFUSALS = 50_000;
const MOST_ID_BYTES = 500_000 * ENTRY_BYTES;
const FIRST_ID_BYTES = 256 * ENTRY_BYTES;

/** Requests that are refused for the same reason share a refusal for a window of their bucket, but not for longer. */
const LONGEST_SHARED_MS = 60_000;
const SHORTEST_SHARED_MS = 1_000;

/** What a replica writes within a day, in bytes: so much of Redis a flood can take. */
const MOST_WRITTEN = 256 * 1_048_576;
const HOURS = 24;

/** A refusal that is to be written. */
export interface PendingRefusal extends Question {
  readonly payer: Payer | undefined;
  readonly operation: string;
  readonly cost: number;
  readonly charged: Denied;
  /** The bucket that refused. Undefined for a block, which counts nothing. */
  readonly limited: PayerBucket | undefined;
}

interface Pending {
  readonly refusals: readonly PendingRefusal[];
  /** By hour: entries of requests. */
  readonly ids: readonly (readonly [hour: number, entries: Buffer])[];
  /** Requests that cannot be found by their ids. */
  readonly unfindable: number;
}

interface Shared {
  readonly number: number;
  readonly limit: number;
  readonly untilMs: number;
}

export class RefusalLog {
  readonly #nowMs: () => number;
  /** By operation, then by bucket, then by owner and principal: short keys, because a flood asks for one with each request. */
  readonly #shared = new Map<string, Map<string, Map<string, Shared>>>();
  readonly #writtenBytes = new Map<number, number>();
  #refusals: PendingRefusal[] = [];
  /** By hour: the entries of requests, in a buffer that is longer than they are. */
  #ids = new Map<number, { bytes: Buffer; length: number }>();
  #next = 0;
  #unfindable = 0;
  #isTight = false;
  /** Of this process. */
  readonly processTag = randomInt(0x1000000);

  /** @param nowMs Unix time by the clock of Redis */
  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /** Notes a finished request if it got a 429. */
  requestFinished(context: RequestContext): void {
    const { refusal, operation, charged, requestId } = context;
    if (refusal?.status !== 429 || charged?.outcome !== 'denied' || operation === undefined) return;
    const payer = context.caller ?? context.publicClient;
    const atMs = this.#nowMs();
    const known = this.#sharedBy(operation.id, charged.bucket);
    const { owner, limit } = charged;
    const key = payer?.principal === undefined ? owner : `${owner} ${payer.principal.id}`;
    let shared = known.get(key);
    if (shared === undefined || atMs >= shared.untilMs || shared.limit !== limit) {
      if (this.#refusals.length >= MOST_REFUSALS) {
        this.#unfindable += 1;
        return;
      }
      shared = { number: this.#next, limit, untilMs: this.#sharedUntil(atMs, charged.windowSeconds) };
      this.#next += 1;
      known.set(key, shared);
      this.#refusals.push(this.#pending(context, charged, atMs, shared.number));
    }
    this.#addId(requestId, atMs, shared.number);
  }

  /** Takes what is to be written. Requests are only counted if this replica has written too much within a day. */
  take(): Pending {
    const nowMs = this.#nowMs();
    this.#forget(nowMs);
    const refusals = this.#refusals;
    const ids = [...this.#ids].map(([hour, { bytes, length }]) => [hour, bytes.subarray(0, length)] as const);
    this.#refusals = [];
    this.#ids = new Map();
    const [written, most] = this.#writtenIn(hourOf(nowMs));
    // Before the room ends, refusals are shared for longer, so that it is left for ids.
    this.#isTight = written >= most / 2;
    const unfindable = this.#unfindable;
    this.#unfindable = 0;
    if (written < most) return { refusals, ids, unfindable };
    const lost = ids.reduce((sum, [, { length }]) => sum + length / ENTRY_BYTES, 0);
    return { refusals: [], ids: [], unfindable: unfindable + lost };
  }

  /** Keeps what could not be written, for the next time. */
  keep({ refusals, ids, unfindable }: Pending): void {
    this.#refusals = [...refusals, ...this.#refusals].slice(0, MOST_REFUSALS);
    this.#unfindable += unfindable;
    for (const [hour, bytes] of ids) {
      if (bytes.length === 0) continue;
      const { bytes: newer, length } = this.#ids.get(hour) ?? { bytes, length: 0 };
      const all = Buffer.concat([bytes, newer.subarray(0, length)]);
      const kept = all.subarray(0, MOST_ID_BYTES);
      this.#unfindable += (all.length - kept.length) / ENTRY_BYTES;
      this.#ids.set(hour, { bytes: kept, length: kept.length });
    }
  }

  #sharedBy(operation: string, bucket: string): Map<string, Shared> {
    const byBucket = this.#shared.get(operation) ?? new Map<string, Map<string, Shared>>();
    if (byBucket.size === 0) this.#shared.set(operation, byBucket);
    const known = byBucket.get(bucket) ?? new Map<string, Shared>();
    if (known.size === 0) byBucket.set(bucket, known);
    return known;
  }

  #forget(nowMs: number): void {
    for (const byBucket of this.#shared.values())
      for (const known of byBucket.values())
        for (const [key, { untilMs }] of known) if (untilMs <= nowMs) known.delete(key);
  }

  /** Refusals of different hours share nothing, so that all of an hour ends together. */
  #sharedUntil(atMs: number, windowSeconds: number): number {
    const hourEndMs = (hourOf(atMs) + 1) * HOUR_MS;
    if (this.#isTight) return hourEndMs;
    const windowMs = windowSeconds === 0 ? SHORTEST_SHARED_MS : windowSeconds * 1_000;
    return Math.min(atMs + Math.min(LONGEST_SHARED_MS, windowMs), hourEndMs);
  }

  #addId(requestId: string, atMs: number, number: number): void {
    const hour = hourOf(atMs);
    let ids = this.#ids.get(hour);
    if (ids === undefined) {
      ids = { bytes: Buffer.allocUnsafe(FIRST_ID_BYTES), length: 0 };
      this.#ids.set(hour, ids);
    }
    if (ids.length + ENTRY_BYTES > ids.bytes.length) {
      if (ids.length >= MOST_ID_BYTES) {
        this.#unfindable += 1;
        return;
      }
      ids.bytes = Buffer.concat([ids.bytes, Buffer.allocUnsafe(ids.bytes.length + FIRST_ID_BYTES)]);
    }
    writeEntry(ids.bytes, ids.length, requestId, { atMs, processTag: this.processTag, number });
    ids.length += ENTRY_BYTES;
  }

  /** Counts bytes that were written. */
  written(bytes: number): void {
    const hour = hourOf(this.#nowMs());
    this.#writtenBytes.set(hour, (this.#writtenBytes.get(hour) ?? 0) + bytes);
  }

  /** In one hour a replica writes at most half of what it may still write, so that a flood leaves room for others. */
  #writtenIn(hour: number): readonly [bytes: number, most: number] {
    let earlier = 0;
    for (const [of, bytes] of this.#writtenBytes) {
      if (of <= hour - HOURS) this.#writtenBytes.delete(of);
      else if (of !== hour) earlier += bytes;
    }
    return [this.#writtenBytes.get(hour) ?? 0, (MOST_WRITTEN - earlier) / 2];
  }

  #pending(context: RequestContext, charged: Denied, atMs: number, number: number): PendingRefusal {
    const { due, chargeAskedMs, operation } = context;
    const { bucket, owner, windowSeconds } = charged;
    const payer = context.caller ?? context.publicClient;
    const limited = due?.buckets.find(
      (one) => one.name === bucket && one.owner === owner && one.shadow !== true,
    );
    const toMs = Math.round(chargeAskedMs === undefined ? atMs : atMs - (performance.now() - chargeAskedMs));
    return {
      processTag: this.processTag,
      number,
      bucket,
      owner,
      hashTag: payer?.hashTag ?? '',
      atMs,
      fromMs: Math.max(0, limited?.span?.startMs ?? toMs - windowSeconds * 1_000),
      toMs,
      payer,
      operation: operation?.id ?? '',
      cost: costAtAdmission(context),
      charged,
      limited,
    };
  }
}

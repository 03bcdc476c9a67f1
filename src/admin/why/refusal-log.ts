/** The refusals of this process that are not written yet. */
import { randomInt } from 'node:crypto';
import { hostname } from 'node:os';
import { NEVER } from '../../domain/limits/limits.ts';
import type { PayerBucket } from '../../stages/buckets/payer-bucket.ts';
import { costAtAdmission, type Denied, type RequestContext } from '../../stages/request-context.ts';
import type { Question } from './fills.ts';
import { ENTRY_BYTES, HOUR_MS, hourOf, type RefusedId, writeEntry } from './id-index.ts';
import type { Refusal } from './refusal.ts';

/** Refusals that wait to be written, and ids of requests that do. Beyond, they are lost. */
const MOST_REFUSALS = 5_000;
const MOST_ID_BYTES = 100_000 * ENTRY_BYTES;
const FIRST_ID_BYTES = 256 * ENTRY_BYTES;

/** Requests that are refused for the same reason share a refusal for a window of their bucket, but not for longer. */
const LONGEST_SHARED_MS = 60_000;
const SHORTEST_SHARED_MS = 1_000;

/** What a replica writes within a day, in bytes: so much of Redis a flood can take. */
const MOST_WRITTEN = 128 * 1_048_576;
const HOURS = 24;

/** A refusal that is to be written. */
export interface PendingRefusal extends RefusedId {
  readonly refusal: Refusal;
  /** Undefined for a block. */
  readonly limited: PayerBucket | undefined;
  /** Undefined where nothing was counted. */
  readonly question: Question | undefined;
}

interface Pending {
  readonly refusals: readonly PendingRefusal[];
  /** By hour: entries of requests. */
  readonly ids: readonly (readonly [hour: number, entries: Buffer])[];
}

interface Shared {
  readonly number: number;
  readonly untilMs: number;
}

export class RefusalLog {
  readonly #nowMs: () => number;
  readonly #shared = new Map<string, Shared>();
  readonly #writtenBytes = new Map<number, number>();
  #refusals: PendingRefusal[] = [];
  /** By hour: the entries of requests, in a buffer that is longer than they are. */
  #ids = new Map<number, { bytes: Buffer; length: number }>();
  #next = 0;
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
    const principal = context.caller?.principal.id;
    const key = `${charged.bucket}\n${charged.owner}\n${operation.id}\n${principal}\n${charged.limit}`;
    const atMs = this.#nowMs();
    let shared = this.#shared.get(key);
    if (shared === undefined || atMs >= shared.untilMs) {
      if (this.#refusals.length >= MOST_REFUSALS) return;
      shared = { number: this.#next, untilMs: sharedUntil(atMs, charged.windowSeconds) };
      this.#next += 1;
      this.#shared.set(key, shared);
      this.#refusals.push(this.#pending(context, charged, atMs, shared.number));
    }
    this.#addId(requestId, { atMs, processTag: this.processTag, number: shared.number });
  }

  /** Takes what is to be written. Nothing, if this replica has written too much within a day. */
  take(): Pending {
    const nowMs = this.#nowMs();
    for (const [key, { untilMs }] of this.#shared) if (untilMs <= nowMs) this.#shared.delete(key);
    const refusals = this.#refusals;
    const ids = [...this.#ids].map(([hour, { bytes, length }]) => [hour, bytes.subarray(0, length)] as const);
    this.#refusals = [];
    this.#ids = new Map();
    return this.#hasRoom(hourOf(nowMs)) ? { refusals, ids } : { refusals: [], ids: [] };
  }

  /** Keeps what could not be written, for the next time. */
  keep({ refusals, ids }: Pending): void {
    this.#refusals = [...refusals, ...this.#refusals].slice(0, MOST_REFUSALS);
    for (const [hour, bytes] of ids) {
      if (bytes.length === 0) continue;
      const { bytes: newer, length } = this.#ids.get(hour) ?? { bytes, length: 0 };
      const all = Buffer.concat([bytes, newer.subarray(0, length)]).subarray(0, MOST_ID_BYTES);
      this.#ids.set(hour, { bytes: all, length: all.length });
    }
  }

  #addId(requestId: string, id: RefusedId): void {
    const hour = hourOf(id.atMs);
    let ids = this.#ids.get(hour);
    if (ids === undefined) {
      ids = { bytes: Buffer.allocUnsafe(FIRST_ID_BYTES), length: 0 };
      this.#ids.set(hour, ids);
    }
    if (ids.length + ENTRY_BYTES > ids.bytes.length) {
      if (ids.length >= MOST_ID_BYTES) return;
      ids.bytes = Buffer.concat([ids.bytes, Buffer.allocUnsafe(ids.bytes.length + FIRST_ID_BYTES)]);
    }
    writeEntry(ids.bytes, ids.length, requestId, id);
    ids.length += ENTRY_BYTES;
  }

  /** Counts bytes that were written. */
  written(bytes: number): void {
    const hour = hourOf(this.#nowMs());
    this.#writtenBytes.set(hour, (this.#writtenBytes.get(hour) ?? 0) + bytes);
  }

  /** In one hour a replica writes at most half of what it may still write, so that a flood leaves room for others. */
  #hasRoom(hour: number): boolean {
    let earlier = 0;
    for (const [of, bytes] of this.#writtenBytes) {
      if (of <= hour - HOURS) this.#writtenBytes.delete(of);
      else if (of !== hour) earlier += bytes;
    }
    return (this.#writtenBytes.get(hour) ?? 0) < (MOST_WRITTEN - earlier) / 2;
  }

  #pending(context: RequestContext, charged: Denied, atMs: number, number: number): PendingRefusal {
    const limited = context.due?.buckets.find(
      ({ name, owner, shadow }) => name === charged.bucket && owner === charged.owner && shadow !== true,
    );
    const { processTag } = this;
    return {
      processTag,
      number,
      atMs,
      limited,
      refusal: refusalOf(context, charged, limited, atMs),
      question: limited && questionOf(context, limited, { processTag, number, atMs }),
    };
  }
}

/** Refusals of different hours share nothing, so that all of an hour ends together. */
function sharedUntil(atMs: number, windowSeconds: number): number {
  const windowMs = windowSeconds === 0 ? SHORTEST_SHARED_MS : windowSeconds * 1_000;
  const sharedMs = Math.min(LONGEST_SHARED_MS, windowMs);
  return Math.min(atMs + sharedMs, (hourOf(atMs) + 1) * HOUR_MS);
}

function refusalOf(
  context: RequestContext,
  { bucket, owner, limit, windowSeconds, remaining, retryAfterUs, degraded }: Denied,
  limited: PayerBucket | undefined,
  atMs: number,
): Refusal {
  const payer = context.caller ?? context.publicClient;
  return {
    atMs,
    replica: hostname(),
    operation: context.operation?.id ?? '',
    principal: payer?.principal?.id ?? null,
    account: payer?.account ?? null,
    address: payer?.address ?? null,
    cost: costAtAdmission(context),
    ...{ bucket, owner, limit, windowSeconds, remaining },
    retryAfterMs: Math.ceil(retryAfterUs / 1_000),
    ...(degraded !== undefined && { degraded }),
    ...(limited === undefined ? { detail: context.refusal?.detail } : sourceOf(limited)),
  } as Refusal;
}

function sourceOf({ scope, counts, source, plan, untilMs }: PayerBucket) {
  return {
    ...{ scope, counts, source },
    ...(plan !== undefined && { plan }),
    ...(untilMs !== NEVER && { untilMs }),
  };
}

function questionOf(
  { chargeAskedMs = performance.now(), caller, publicClient }: RequestContext,
  { name, owner, windowSeconds, span }: PayerBucket,
  { processTag, number, atMs }: RefusedId,
): Question {
  const toMs = Math.round(atMs - (performance.now() - chargeAskedMs));
  return {
    ...{ processTag, number, bucket: name, owner, atMs, toMs },
    hashTag: (caller ?? publicClient)?.hashTag ?? '',
    fromMs: Math.max(0, span?.startMs ?? toMs - windowSeconds * 1_000),
  };
}

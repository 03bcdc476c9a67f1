import { hostname } from 'node:os';
import type { Awaitable } from '../../domain/awaitable.ts';
import { NEVER } from '../../domain/limits/limits.ts';
import type { PayerBucket } from '../../stages/buckets/payer-bucket.ts';
import { limitPart, readableOperation } from './refusal.ts';
import type { PendingRefusal } from './refusal-log.ts';

/** Places that are looked up with one writing: each takes a reading of the file, and a flood can have an override for each caller. */
const MOST_LOOKUPS = 20;

/** Places that are remembered while the same limits are in force. */
const MOST_PLACES = 10_000;

/** The part of a line that callers with the same limit share. It is made once for them, because a flood has thousands. */
export class LimitParts {
  readonly #sources;
  readonly #replica = hostname();
  /** By operation and bucket: what was made last. */
  readonly #last = new Map<string, Made>();
  #latest: Made | undefined;
  readonly #places = new Map<string, string | undefined>();
  #limits: object | undefined;
  #lookups = 0;

  constructor(sources: {
    /** Where the files set the limit of a bucket. */
    writtenAt(bucket: PayerBucket): Promise<string | undefined>;
    /** Another object after each change of the files. */
    limits(): object;
  }) {
    this.#sources = sources;
  }

  of(one: PendingRefusal): Awaitable<string> {
    const latest = this.#latest;
    if (latest !== undefined && latest.of.operation === one.operation && isSame(latest.of, one))
      return latest.part;
    const place = this.#placeOf(one.limited);
    if (place === undefined || typeof place === 'string') return this.#make(one, place);
    return place.then((known) => this.#make(one, known));
  }

  /** Begins another writing. The files may have changed. */
  begin(): void {
    this.#lookups = 0;
    const limits = this.#sources.limits();
    if (limits === this.#limits && this.#places.size < MOST_PLACES) return;
    this.#limits = limits;
    this.#latest = undefined;
    this.#last.clear();
    this.#places.clear();
  }

  #placeOf(limited: PayerBucket | undefined): Promise<string | undefined> | string | undefined {
    if (limited === undefined || limited.source === 'live') return undefined;
    const { source, name, plan, owner } = limited;
    const key = `${source} ${name} ${source === 'override' ? owner : plan}`;
    if (this.#places.has(key)) return this.#places.get(key);
    if (this.#lookups >= MOST_LOOKUPS) return undefined;
    this.#lookups += 1;
    const looked = this.#sources.writtenAt(limited).catch(() => undefined);
    return looked.then((place) => {
      this.#places.set(key, place);
      return place;
    });
  }

  #make(of: PendingRefusal, writtenAt: string | undefined): string {
    const { operation, bucket, cost, charged, limited } = of;
    const { limit, windowSeconds, degraded } = charged;
    const key = `${operation}\n${bucket}`;
    const last = this.#last.get(key);
    if (last !== undefined && last.writtenAt === writtenAt && isAlike(last.of, of)) return last.part;
    const part = limitPart({
      replica: this.#replica,
      operation: readableOperation(operation),
      cost,
      bucket,
      limit,
      windowSeconds,
      ...(degraded !== undefined && { degraded }),
      ...(writtenAt !== undefined && { writtenAt }),
      ...(limited === undefined ? { detail: charged.refusal.detail } : sourceOf(limited)),
    });
    this.#latest = { of, writtenAt, part };
    this.#last.set(key, this.#latest);
    return part;
  }
}

interface Made {
  readonly of: PendingRefusal;
  readonly writtenAt: string | undefined;
  readonly part: string;
}

/** Whether two refusals have the same limit from the same place. */
function isSame(a: PendingRefusal, b: PendingRefusal): boolean {
  return a.bucket === b.bucket && b.limited?.source !== 'override' && isAlike(a, b);
}

/** Whether two refusals by buckets of one name have the same limit, written anywhere. */
function isAlike(a: PendingRefusal, b: PendingRefusal): boolean {
  const [ofA, ofB] = [a.limited, b.limited];
  if (ofA === undefined || ofB === undefined) return false;
  return (
    ofA.source === ofB.source &&
    ofA.plan === ofB.plan &&
    ofA.untilMs === ofB.untilMs &&
    ofA.scope === ofB.scope &&
    ofA.counts === ofB.counts &&
    ofA.span?.startMs === ofB.span?.startMs &&
    a.cost === b.cost &&
    a.charged.limit === b.charged.limit &&
    a.charged.windowSeconds === b.charged.windowSeconds &&
    a.charged.degraded === b.charged.degraded
  );
}

function sourceOf({ scope, counts, source, plan, untilMs, period, span }: PayerBucket) {
  return {
    scope,
    counts,
    source,
    ...(plan !== undefined && { plan }),
    ...(untilMs !== NEVER && { untilMs }),
    ...(period !== undefined && span && { period: { unit: period.unit, startMs: span.startMs } }),
  };
}

import { type BucketName, bucketNamed } from './buckets.ts';

/** A limit that was set while the gateways run, or its removal. It takes precedence over the files until it expires. */
export interface LiveLimit {
  readonly bucket: BucketName;
  /** The Account, Organization or address. */
  readonly id: string;
  /** Points per window. */
  readonly limit: number;
  /** Unix time at which it was set or removed. */
  readonly atMs: number;
  /** Unix time at which it expires. */
  readonly untilMs: number;
  readonly why: string;
  readonly by: string;
  /** Whether this removes an earlier one. */
  readonly isRemoved?: boolean;
}

/** The live limits that this process knows. */
export class LiveLimits {
  readonly #limits = new Map<string, LiveLimit>();

  /** Applies a live limit or a removal. Returns false if it changes nothing. The latest wins, regardless of the order of arrival. */
  add(limit: LiveLimit, nowMs: number): boolean {
    for (const [key, { untilMs }] of this.#limits) if (untilMs <= nowMs) this.#limits.delete(key);
    const key = keyOf(limit.bucket, limit.id);
    if (limit.untilMs <= nowMs || limit.atMs <= (this.#limits.get(key)?.atMs ?? 0)) return false;
    this.#limits.set(key, limit);
    return true;
  }

  /** The live limit of a bucket; undefined where the files apply. */
  find(bucket: BucketName, id: string, nowMs: number): LiveLimit | undefined {
    if (this.#limits.size === 0) return undefined;
    const limit = this.#limits.get(keyOf(bucket, id));
    return limit === undefined || limit.isRemoved || limit.untilMs <= nowMs ? undefined : limit;
  }

  /** Those in force, the first to expire first. */
  inForce(nowMs: number): readonly LiveLimit[] {
    return this.remembered(nowMs)
      .filter(({ isRemoved }) => !isRemoved)
      .sort((a, b) => a.untilMs - b.untilMs);
  }

  /** All that have not expired, removals included. */
  remembered(nowMs: number): readonly LiveLimit[] {
    return [...this.#limits.values()].filter(({ untilMs }) => nowMs < untilMs);
  }
}

function keyOf(bucket: BucketName, id: string): string {
  return `${bucket} ${id}`;
}

/** The Redis channel on which replicas that share a key prefix receive live limits. */
export function liveLimitChannel(keyPrefix: string): string {
  return `${keyPrefix}:1:limits`;
}

export function writeLiveLimit({ bucket, id, limit, atMs, untilMs, why, by, isRemoved }: LiveLimit): string {
  const removal = isRemoved ? { isRemoved } : {};
  return JSON.stringify({ bucket, id, limit, atMs, untilMs, why, by, ...removal });
}

/** Parses a message of the channel; undefined for anything else. */
export function readLiveLimit(message: string): LiveLimit | undefined {
  try {
    const limit = JSON.parse(message) as LiveLimit;
    bucketNamed(limit.bucket);
    const texts = [limit.id, limit.why, limit.by];
    const numbers = [limit.limit, limit.atMs, limit.untilMs];
    const isValid = texts.every((text) => typeof text === 'string') && numbers.every(Number.isSafeInteger);
    return isValid && limit.limit > 0 ? limit : undefined;
  } catch {
    return undefined;
  }
}

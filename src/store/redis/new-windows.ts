import { bucketOf } from '../keys.ts';
import { type Charge, isConcurrent } from '../store.ts';

const MS_PER_SECOND = 1000;
/**
 * A key lives for a window and a half, and somewhat longer after its clock was set back. The script itself renews the keys of windows of more
 * than a minute, once a minute.
 */
const CHECKED_WINDOWS = 2;
const LONGEST_CHECKED_SECONDS = 60;
/** Replicas do not load a changed file at the same moment. */
const CHECKED_BESIDES_MS = 3 * MS_PER_SECOND;
/** A window that was not used for this long is new again: another one may have been in force. */
const FORGOTTEN_AFTER_MS = MS_PER_SECOND;

interface Use {
  readonly windowSeconds: number;
  lastMs: number;
  checkedUntilMs: number;
}

/**
 * Finds buckets whose window is new to this process. Their keys may still have the life that an earlier, shorter window gave them, and would
 * expire before their counts. Checking the life of a key costs Redis a microsecond, so only keys of new windows are checked.
 */
export class NewWindows {
  /** By the bucket's name. */
  readonly #uses = new Map<string, Use>();

  /** Whether any bucket has a new window. Call it for every call that spends. */
  areIn(charges: readonly Charge[], nowMs: number): boolean {
    let areNew = false;
    let seen: object | undefined;
    for (const { buckets, kind = buckets } of charges) {
      // Neighbours mostly differ in their keys alone.
      if (kind === seen) continue;
      seen = kind;
      for (const bucket of buckets) {
        const { key, windowSeconds, calendar } = bucket;
        // The script itself compares how long the key of a period lives.
        if (isConcurrent(bucket) || calendar !== undefined) continue;
        const use = this.#use(bucketOf(key), windowSeconds, nowMs);
        use.lastMs = nowMs;
        areNew ||= nowMs < use.checkedUntilMs;
      }
    }
    return areNew;
  }

  #use(bucket: string, windowSeconds: number, nowMs: number): Use {
    const known = this.#uses.get(bucket);
    if (known?.windowSeconds === windowSeconds && nowMs - known.lastMs <= FORGOTTEN_AFTER_MS) return known;
    const checkedSeconds = CHECKED_WINDOWS * Math.min(windowSeconds, LONGEST_CHECKED_SECONDS);
    const checkedUntilMs = nowMs + checkedSeconds * MS_PER_SECOND + CHECKED_BESIDES_MS;
    const use = { windowSeconds, lastMs: nowMs, checkedUntilMs };
    this.#uses.set(bucket, use);
    return use;
  }
}

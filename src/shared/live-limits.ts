import { Type } from 'typebox';
import { id, isMade, matching, parsed, reasonText, timeMs } from './bounds.ts';
import { type Fact, type FactKind, Facts } from './facts.ts';

/** A limit that was set while the gateways run, or its removal. It takes precedence over the files until it expires. */
export interface LiveLimit extends Fact {
  /** The name of its row. It has no effect while the limits have no such row. */
  readonly bucket: string;
  /** The Account, Organization, address or principal. */
  readonly id: string;
  /** Points or requests per window. */
  readonly limit: number;
  readonly why: string;
  readonly by: string;
  /** Whether this removes an earlier one. */
  readonly isRemoved?: boolean;
}

/** Files remain the source of truth: what is needed for longer belongs in one. */
export const LONGEST_LIVE_MS = 7 * 86_400_000;

const MAX_POINTS = 1_000_000_000;

const message = Type.Object({
  bucket: Type.String({ pattern: '^[a-z][a-z0-9-]{0,63}$' }),
  id,
  limit: Type.Integer({ minimum: 1, maximum: MAX_POINTS }),
  atMs: timeMs,
  untilMs: timeMs,
  why: reasonText,
  by: reasonText,
  isRemoved: Type.Optional(Type.Boolean()),
});

const asMessage = matching(message);

export const LIVE_LIMITS: FactKind<LiveLimit> = {
  topic: 'limits',
  most: 50_000,
  keyOf: ({ bucket, id }) => liveKey(bucket, id),
  write({ bucket, id, limit, atMs, untilMs, why, by, isRemoved }) {
    const removal = isRemoved ? { isRemoved } : {};
    return JSON.stringify({ bucket, id, limit, atMs, untilMs, why, by, ...removal });
  },
  read(text, nowMs) {
    const read: LiveLimit | undefined = asMessage(parsed(text));
    if (read === undefined) return undefined;
    const { atMs, untilMs } = read;
    return isMade(atMs, nowMs) && untilMs - atMs <= LONGEST_LIVE_MS ? read : undefined;
  },
};

/** The live limits that this process knows. */
export class LiveLimits extends Facts<LiveLimit> {
  constructor() {
    super(LIVE_LIMITS);
  }

  /** The live limit of a bucket; undefined where the files apply. */
  of(bucket: string, id: string, nowMs: number): LiveLimit | undefined {
    if (this.size === 0) return undefined;
    const limit = this.find(liveKey(bucket, id), nowMs);
    return limit?.isRemoved ? undefined : limit;
  }

  /** How many are in force. */
  count(nowMs: number): number {
    let count = 0;
    for (const { untilMs, isRemoved } of this.all()) if (nowMs < untilMs && !isRemoved) count += 1;
    return count;
  }

  /** Those in force, the first to expire first. */
  inForce(nowMs: number): readonly LiveLimit[] {
    return this.remembered(nowMs)
      .filter(({ isRemoved }) => !isRemoved)
      .sort((a, b) => a.untilMs - b.untilMs);
  }
}

/** What `find` takes. */
export function liveKey(bucket: string, id: string): string {
  return `${bucket} ${id}`;
}

import { Type } from 'typebox';
import { MAX_PERIOD_LIMIT } from '../domain/limits/rows.ts';
import { type Fact, type FactKind, Facts } from './facts.ts';
import { id } from './message-bounds.ts';
import { type ChangeReason, OPERATOR_MEMBERS, operatorKind } from './operator-facts.ts';

/** A limit that was set while the gateways run, or its removal. It takes precedence over the files until it expires. */
export interface LiveLimit extends Fact, ChangeReason {
  /** The name of its row. It has no effect while the limits have no such row. */
  readonly bucket: string;
  /** The Account, Organization, address or principal. */
  readonly id: string;
  /** Points or requests per window or period. */
  readonly limit: number;
  /**
   * What the files set there when it was made, by the plan of the owner. Undefined where an older version made it. Not every replica knows
   * every plan, and all of them report one change.
   */
  readonly filed?: number | 'none';
}

const message = Type.Object({
  bucket: Type.String({ pattern: '^[a-z][a-z0-9-]{0,63}$' }),
  id,
  limit: Type.Integer({ minimum: 1, maximum: MAX_PERIOD_LIMIT }),
  ...OPERATOR_MEMBERS,
  // The last: a message without it, as an older version repeats it, sorts later and so changes nothing.
  filed: Type.Optional(
    Type.Union([Type.Integer({ minimum: 0, maximum: MAX_PERIOD_LIMIT }), Type.Literal('none')]),
  ),
});

export const LIVE_LIMITS: FactKind<LiveLimit> = operatorKind(message, {
  topic: 'limits',
  plural: 'live limits',
  metric: 'limit',
  most: 50_000,
  keyOf: ({ bucket, id }) => liveKey(bucket, id),
});

/** The live limits that this process knows. */
export class LiveLimits extends Facts<LiveLimit> {
  constructor() {
    super(LIVE_LIMITS);
  }

  /** The live limit of a bucket; undefined where the files apply. */
  of(bucket: string, id: string, nowMs: number): LiveLimit | undefined {
    return this.size === 0 ? undefined : this.findInForce(liveKey(bucket, id), nowMs);
  }

  /** How many are in force. */
  count(nowMs: number): number {
    let count = 0;
    for (const { untilMs, isRemoved } of this.all()) if (nowMs < untilMs && !isRemoved) count += 1;
    return count;
  }
}

/** What `find` takes. */
export function liveKey(bucket: string, id: string): string {
  return `${bucket} ${id}`;
}

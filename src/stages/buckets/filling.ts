import type { ScopeName } from '../../domain/limits/scopes.ts';
import type { BucketState } from '../../store/store.ts';
import { forEachState, type NamedLimit, namedLimit, type PayerBucket } from './payer-bucket.ts';

/** Shorter windows are over before anybody could read about them. */
const SHORTEST_SECONDS = 60;

/** A bucket that has reached a share of its limit. */
export interface Filling extends NamedLimit {
  readonly percent: 80 | 100;
  readonly scope: ScopeName;
  /** The Account, Organization, principal or address whose bucket it is. */
  readonly owner: string;
  readonly counts: PayerBucket['counts'];
  readonly remaining: number;
}

/**
 * The buckets with a window of a minute or longer of which four fifths or all is used; undefined if there are none. All of a limit is used
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
  { remaining, retryAfterUs }: BucketState,
  found: { filling: Filling[] | undefined },
): void {
  if (bucket.shadow || bucket.windowSeconds < SHORTEST_SECONDS) return;
  // A fifth, in whole numbers.
  if (remaining * 5 > bucket.limit && retryAfterUs === 0) return;
  const { scope, owner, counts } = bucket;
  const percent = remaining === 0 || retryAfterUs > 0 ? 100 : 80;
  found.filling ??= [];
  found.filling.push({ percent, ...namedLimit(bucket), scope, owner, counts, remaining });
}

import { US_PER_SECOND } from '../../domain/clock.ts';
import { MOST_HEADER_ITEMS } from '../../domain/limits/rows.ts';
import { type BucketCharge, type BucketState, isConcurrent } from '../../store/store.ts';

/** A limit as the RateLimit headers report it. */
export interface ReportedLimit {
  readonly name: string;
  readonly headerName: string;
  readonly limit: number;
  /** Missing for rules that are not rows. They count points or requests. */
  readonly counts?: NonNullable<BucketCharge['counts']>;
  readonly shadow?: boolean | undefined;
  readonly windowSeconds: number;
  readonly isContract: boolean;
  /** Whether the header says that the limit is in points; by the draft it is in requests where nothing is said. */
  readonly saysPoints?: boolean;
}

/** The buckets of a request, as the headers report them. */
export interface Reportable {
  readonly buckets: readonly ReportedLimit[];
  /** Every limit that can refuse: of the contract's reads and writes, then of the further limits of this operation. */
  readonly policyItems: readonly ReportedLimit[];
  /** The RateLimit-Policy header; of the first limits, if there are too many for one header. */
  readonly policy: string;
}

/** An Integer of a structured field has at most 15 digits (RFC 9651 section 3.3.1). A parser drops the whole field for a longer one. */
const MOST_IN_FIELD = 999_999_999_999_999;

export function policyText(items: readonly ReportedLimit[]): string {
  return items
    .slice(0, MOST_HEADER_ITEMS)
    .map((item) => `"${item.headerName}";q=${Math.min(item.limit, MOST_IN_FIELD)};${unitOf(item)}`)
    .join(', ');
}

function unitOf(item: ReportedLimit): string {
  if (isConcurrent(item)) return 'qu="concurrent-requests"';
  return item.saysPoints ? `qu="points";w=${item.windowSeconds}` : `w=${item.windowSeconds}`;
}

/** The names, as in RateLimit-Policy, of the limits that have no room for the request. */
export function violatedPolicies(
  buckets: readonly ReportedLimit[],
  states: readonly (BucketState | undefined)[],
): readonly string[] {
  return buckets.flatMap((bucket, index) => {
    const isViolated = !bucket.shadow && (states[index]?.retryAfterUs ?? 0) > 0;
    return isViolated ? [bucket.headerName] : [];
  });
}

/** The same with some of its limits. */
export function onlyThose<T extends Reportable>(due: T, isMeant: (limit: ReportedLimit) => boolean): T {
  const policyItems = due.policyItems.filter(isMeant);
  return { ...due, buckets: due.buckets.filter(isMeant), policyItems, policy: policyText(policyItems) };
}

/**
 * RateLimit-Policy and RateLimit of a charge. RateLimit names the buckets that the request used, shadow limits excepted; `t` is
 * rounded up so that clients wait long enough. Of more than eight limits, it names those that have no room, then those that are nearest
 * to their limit.
 */
export function rateLimitFields(
  due: Reportable,
  states: readonly (BucketState | undefined)[],
): { readonly policy: string; readonly rateLimit: string } {
  if (states.length < due.buckets.length) throw new TypeError('the store gave too few bucket states');
  if (due.policyItems.length > MOST_HEADER_ITEMS) return crowdedFields(due, states);
  let rateLimit = '';
  for (let index = 0; index < due.buckets.length; index++) {
    const bucket = due.buckets[index];
    const state = states[index];
    if (bucket === undefined || state === undefined || bucket.shadow) continue;
    rateLimit += `${rateLimit === '' ? '' : ', '}${itemText(bucket, state)}`;
  }
  return { policy: due.policy, rateLimit };
}

/** When requests in flight will end is unknown. */
function itemText(bucket: ReportedLimit, { remaining, resetAfterUs }: BucketState): string {
  const left = `"${bucket.headerName}";r=${Math.min(remaining, MOST_IN_FIELD)}`;
  return isConcurrent(bucket) ? left : `${left};t=${Math.ceil(resetAfterUs / US_PER_SECOND)}`;
}

function crowdedFields(due: Reportable, states: readonly (BucketState | undefined)[]) {
  const used = due.buckets
    .flatMap((bucket, index) => {
      const state = states[index];
      return state === undefined || bucket.shadow ? [] : [{ bucket, state }];
    })
    // A 429 is about the longest wait.
    .sort(
      (a, b) =>
        b.state.retryAfterUs - a.state.retryAfterUs ||
        a.state.remaining / a.bucket.limit - b.state.remaining / b.bucket.limit,
    )
    .slice(0, MOST_HEADER_ITEMS);
  const rateLimit = due.buckets
    .flatMap((bucket) => used.filter((one) => one.bucket === bucket))
    .map(({ bucket, state }) => itemText(bucket, state))
    .join(', ');
  // The contract's buckets are always named (contract section 8.1).
  const contract = due.policyItems.filter(({ isContract }) => isContract);
  const further = due.policyItems
    .filter(({ isContract }) => !isContract)
    .sort((a, b) => rankOf(used, a.name) - rankOf(used, b.name))
    .slice(0, MOST_HEADER_ITEMS - contract.length);
  const named = new Set([...contract, ...further]);
  return { policy: policyText(due.policyItems.filter((item) => named.has(item))), rateLimit };
}

function rankOf(used: readonly { readonly bucket: ReportedLimit }[], name: string): number {
  const rank = used.findIndex(({ bucket }) => bucket.name === name);
  return rank === -1 ? MOST_HEADER_ITEMS : rank;
}

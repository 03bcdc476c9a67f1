/** What a request of Envoy's is charged: one bucket for each limit that applies to its descriptors. */
import { hash } from 'node:crypto';
import type { Span } from '../../../domain/limits/calendar.ts';
import {
  calendarOfUnit,
  type DescriptorLevel,
  type DescriptorLimit,
  type DescriptorRule,
  findRule,
  idOf,
  UNIT_SECONDS,
} from '../../../domain/limits/descriptors.ts';
import type { ReportedLimit } from '../../../stages/buckets/rate-limit-fields.ts';
import { bucketKey, PERIOD_ENDING } from '../../../store/keys.ts';
import { type BucketCharge, MAX_LIMIT } from '../../../store/store.ts';
import type { RateLimitDescriptor, RateLimitRequest } from './messages.ts';
import { InvalidRequest, numberOf, overridden } from './override.ts';

/** A limit that counts, and what the request adds to it. */
export interface LimitedBucket extends BucketCharge, ReportedLimit {
  /** How many points are spent or given back: at least 1. */
  readonly cost: number;
  readonly rule: DescriptorLimit;
  /**
   * What the request adds. Below 0 it gives points back. With 0 it spends nothing: the limit has no room where one request would not fit.
   */
  readonly hits: number;
}

/** What applies to one descriptor. */
export type DescriptorPlan =
  | { readonly kind: 'none' }
  | { readonly kind: 'unlimited' }
  | { readonly kind: 'banned'; readonly limit: DescriptorLimit }
  | { readonly kind: 'counted'; readonly metadata: DescriptorRule['metadata']; readonly bucket: number };

export interface Plan {
  readonly domain: string;
  /** For each descriptor of the request, in its order. */
  readonly descriptors: readonly DescriptorPlan[];
  readonly buckets: readonly LimitedBucket[];
}

/** As many buckets as one charge may have. */
const MOST_DESCRIPTORS = 32;

const NO_LIMIT: DescriptorPlan = { kind: 'none' };
const UNLIMITED: DescriptorPlan = { kind: 'unlimited' };

/** The limit of a descriptor. */
interface Found {
  readonly limit: NonNullable<DescriptorRule['limit']>;
  readonly replaces: DescriptorRule['replaces'];
  readonly metadata: DescriptorRule['metadata'];
  readonly id: string;
}

/**
 * Finds the limits of a request.
 *
 * @param rules undefined where no file has the request's domain
 * @throws InvalidRequest
 */
export function planOf(
  request: RateLimitRequest,
  rules: DescriptorLevel | undefined,
  keyPrefix: string,
): Plan {
  const { domain, descriptors } = request;
  if (domain === '') throw new InvalidRequest('The request names no domain.');
  if (descriptors.length === 0) throw new InvalidRequest('The request has no descriptors.');
  if (descriptors.length > MOST_DESCRIPTORS)
    throw new InvalidRequest(
      `The request has ${descriptors.length} descriptors, of ${MOST_DESCRIPTORS} at most.`,
    );
  if (rules === undefined) return { domain, descriptors: descriptors.map(() => NO_LIMIT), buckets: [] };
  const found = descriptors.map((one) => limitOf(one, rules));
  const replaced = replacedBy(found);
  const buckets = new Buckets(keyPrefix, domain);
  const planned = found.map((one, index): DescriptorPlan => {
    if (one === undefined) return NO_LIMIT;
    const { limit, metadata, id } = one;
    if (limit === 'unlimited') return UNLIMITED;
    if (replaced.has(limit.name)) return NO_LIMIT;
    const hits = hitsOf(descriptors[index], request.hitsAddend);
    if (limit.requestsPerUnit === 0) return hits < 0 ? NO_LIMIT : { kind: 'banned', limit };
    return { kind: 'counted', metadata, bucket: buckets.add(limit, id, hits) };
  });
  return { domain, descriptors: planned, buckets: buckets.list };
}

const NOTHING: ReadonlySet<string> = new Set();

/** The names of the limits that do not apply beside others of the request. */
function replacedBy(found: readonly (Found | undefined)[]): ReadonlySet<string> {
  let names: Set<string> | undefined;
  for (const one of found) {
    if (one === undefined || one.replaces.length === 0) continue;
    names ??= new Set();
    for (const name of one.replaces) names.add(name);
  }
  return names ?? NOTHING;
}

/** The buckets of one request. Descriptors with the same keys and values add to one bucket, and the strictest of their limits applies. */
class Buckets {
  readonly list: LimitedBucket[] = [];
  readonly #keyPrefix: string;
  readonly #domain: string;

  constructor(keyPrefix: string, domain: string) {
    this.#keyPrefix = keyPrefix;
    this.#domain = domain;
  }

  /** @returns the index of the bucket */
  add(own: DescriptorLimit, id: string, hits: number): number {
    const key = this.#keyOf(own, id);
    const index = this.list.findIndex((one) => one.key === key);
    const earlier = this.list[index];
    const rule = earlier === undefined ? own : strictest(earlier.rule, own);
    const { label, headerName, unit, requestsPerUnit: limit, mode } = rule;
    const calendar = calendarOfUnit(unit);
    const windowSeconds = calendar === undefined ? rule.windowSeconds : secondsOf(calendar.at(Date.now()));
    const sum = (earlier?.hits ?? 0) + hits;
    const most = sum < 0 ? MAX_LIMIT : limit + 1;
    // Without spread syntax, which takes as long as the rest of the plan.
    const bucket: LimitedBucket = {
      key,
      limit,
      windowSeconds,
      calendar,
      shadow: mode !== 'enforced',
      cost: Math.max(1, Math.min(Math.abs(sum), most)),
      name: label,
      headerName,
      isContract: false,
      rule,
      hits: sum,
    };
    if (index === -1) return this.list.push(bucket) - 1;
    this.list[index] = bucket;
    return index;
  }

  /** The domain is the hash tag: all buckets of a request are in one slot of a Redis Cluster. */
  #keyOf({ unit, windowSeconds }: DescriptorLimit, id: string): string {
    const ofOwner = shortened(id);
    if (calendarOfUnit(unit) !== undefined)
      return bucketKey(this.#keyPrefix, this.#domain, `envoy-${unit}${PERIOD_ENDING}`, ofOwner);
    if (windowSeconds === UNIT_SECONDS[unit])
      return bucketKey(this.#keyPrefix, this.#domain, `envoy-${unit}`, ofOwner);
    return bucketKey(this.#keyPrefix, this.#domain, 'envoy-multiple', `${windowSeconds}~${ofOwner}`);
  }
}

function strictest(one: DescriptorLimit, other: DescriptorLimit): DescriptorLimit {
  if ((one.mode === 'enforced') !== (other.mode === 'enforced')) return one.mode === 'enforced' ? one : other;
  return one.requestsPerUnit <= other.requestsPerUnit ? one : other;
}

function secondsOf({ startMs, endMs }: Span): number {
  return (endMs - startMs) / 1_000;
}

/** Values are often headers of clients: a key would escape a long one character by character. */
const LONGEST_ID = 256;

/** No other id begins with a `#`. */
function shortened(id: string): string {
  return id.length <= LONGEST_ID ? id : `#${hash('sha256', id)}`;
}

function limitOf(
  { entries, limit: override }: RateLimitDescriptor,
  rules: DescriptorLevel,
): Found | undefined {
  if (entries.length === 0) throw new InvalidRequest('A descriptor has no entries.');
  if (override !== null)
    return { limit: overridden(override), replaces: [], metadata: undefined, id: idOf(entries) };
  const found = findRule(rules, entries);
  if (found === undefined) return undefined;
  const { limit, replaces, metadata } = found.rule;
  return limit && { limit, replaces, metadata, id: found.id };
}

/**
 * The descriptor's own number of hits, or else the number of the whole request. There, 0 means that it is not set, and counts as 1. Below 0
 * if the descriptor gives hits back.
 */
function hitsOf(descriptor: RateLimitDescriptor | undefined, ofRequest: number): number {
  const own = descriptor?.hitsAddend?.value;
  const hits = own === undefined ? Math.max(1, ofRequest) : numberOf(own);
  return descriptor?.isNegativeHits === true ? -hits : hits;
}

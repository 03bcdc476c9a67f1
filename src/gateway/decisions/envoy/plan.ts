/** What a request of Envoy's is charged: one bucket for each limit that applies to its descriptors. */
import { hash } from 'node:crypto';
import {
  type DescriptorDomain,
  type DescriptorLimit,
  type DescriptorRule,
  findRule,
  idOf,
  MOST_REQUESTS,
  UNIT_SECONDS,
  type UnitName,
} from '../../../domain/limits/descriptors.ts';
import { LONGEST_WINDOW_SECONDS } from '../../../domain/limits/rows.ts';
import type { ReportedLimit } from '../../../stages/buckets/rate-limit-fields.ts';
import { bucketKey } from '../../../store/keys.ts';
import type { BucketCharge } from '../../../store/store.ts';
import type { RateLimitDescriptor, RateLimitOverride, RateLimitRequest, WholeNumber } from './messages.ts';

/** A limit that counts, and what the request adds to it. */
export interface LimitedBucket extends BucketCharge, ReportedLimit {
  readonly cost: number;
  readonly rule: DescriptorLimit;
  /** Whether nothing is to be spent. Then the cost is 1: the limit has no room where one request would not fit. */
  readonly isPeek: boolean;
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

/** Why a request cannot be decided. */
export class InvalidRequest extends Error {
  override readonly name = 'InvalidRequest';
}

/** As many buckets as one charge may have. */
const MOST_DESCRIPTORS = 32;

const NO_LIMIT: DescriptorPlan = { kind: 'none' };
const UNLIMITED: DescriptorPlan = { kind: 'unlimited' };

interface Found {
  readonly limit: DescriptorLimit;
  readonly metadata: DescriptorRule['metadata'];
  readonly id: string;
}

/**
 * Finds the limits of a request.
 *
 * @param domain undefined where no file has the request's domain
 * @throws InvalidRequest
 */
export function planOf(
  request: RateLimitRequest,
  domain: DescriptorDomain | undefined,
  keyPrefix: string,
): Plan {
  const { domain: name, descriptors } = request;
  if (name === '') throw new InvalidRequest('The request names no domain.');
  if (descriptors.length === 0) throw new InvalidRequest('The request has no descriptors.');
  if (descriptors.length > MOST_DESCRIPTORS)
    throw new InvalidRequest(
      `The request has ${descriptors.length} descriptors, of ${MOST_DESCRIPTORS} at most.`,
    );
  if (descriptors.some((one) => one.isNegativeHits))
    throw new InvalidRequest(
      'is_negative_hits cannot be used: Weir counts what happened in a sliding window, and takes nothing back.',
    );
  if (domain === undefined)
    return { domain: name, descriptors: descriptors.map(() => NO_LIMIT), buckets: [] };
  const found = descriptors.map((one) => limitOf(one, domain));
  const replaced = replacedBy(found);
  const buckets = new Buckets(keyPrefix, name);
  const planned = found.map((one, index): DescriptorPlan => {
    if (one === undefined) return NO_LIMIT;
    if (one === 'unlimited') return UNLIMITED;
    if (replaced.has(one.limit.name)) return NO_LIMIT;
    if (one.limit.requestsPerUnit === 0) return { kind: 'banned', limit: one.limit };
    const bucket = buckets.add(one, hitsOf(descriptors[index], request.hitsAddend));
    return { kind: 'counted', metadata: one.metadata, bucket };
  });
  return { domain: name, descriptors: planned, buckets: buckets.list };
}

const NOTHING: ReadonlySet<string> = new Set();

/** The names of the limits that do not apply beside others of the request. */
function replacedBy(found: readonly (Found | 'unlimited' | undefined)[]): ReadonlySet<string> {
  let names: Set<string> | undefined;
  for (const one of found) {
    if (typeof one !== 'object' || one.limit.replaces.length === 0) continue;
    names ??= new Set();
    for (const name of one.limit.replaces) names.add(name);
  }
  return names ?? NOTHING;
}

/** The buckets of one request. Descriptors with the same keys and values add to one bucket. */
class Buckets {
  readonly list: LimitedBucket[] = [];
  readonly #keyPrefix: string;
  readonly #domain: string;

  constructor(keyPrefix: string, domain: string) {
    this.#keyPrefix = keyPrefix;
    this.#domain = domain;
  }

  /** @returns the index of the bucket */
  add({ limit: rule, id }: Found, hits: number): number {
    const { label, headerName, unit, windowSeconds, requestsPerUnit: limit, mode } = rule;
    const unitSeconds = UNIT_SECONDS[unit];
    // The domain is the hash tag: all buckets of a request are in one slot of a Redis Cluster.
    const key =
      windowSeconds === unitSeconds
        ? bucketKey(this.#keyPrefix, this.#domain, `envoy-${unit}`, shortened(id))
        : bucketKey(this.#keyPrefix, this.#domain, 'envoy-multiple', `${windowSeconds}~${shortened(id)}`);
    const index = this.list.findIndex((one) => one.key === key);
    const earlier = this.list[index];
    const sum = (earlier === undefined || earlier.isPeek ? 0 : earlier.cost) + hits;
    const cost = Math.max(1, Math.min(sum, limit + 1));
    // Without spread syntax, which takes as long as the rest of the plan.
    const bucket: LimitedBucket = {
      key,
      limit,
      windowSeconds,
      shadow: mode !== 'enforced',
      cost,
      name: label,
      headerName,
      isContract: false,
      rule,
      isPeek: sum === 0,
    };
    if (earlier === undefined) return this.list.push(bucket) - 1;
    this.list[index] = bucket;
    return index;
  }
}

/** Values are often headers of clients: a key would escape a long one character by character. */
const LONGEST_ID = 256;

/** No other id begins with a `#`. */
function shortened(id: string): string {
  return id.length <= LONGEST_ID ? id : `#${hash('sha256', id)}`;
}

function limitOf(
  { entries, limit: override }: RateLimitDescriptor,
  domain: DescriptorDomain,
): Found | 'unlimited' | undefined {
  if (entries.length === 0) throw new InvalidRequest('A descriptor has no entries.');
  if (override !== null) return { limit: overridden(override), metadata: undefined, id: idOf(entries) };
  const found = findRule(domain, entries);
  if (found === undefined) return undefined;
  const { limit } = found.rule;
  if (limit === undefined || limit === 'unlimited') return limit;
  return { limit, metadata: found.rule.metadata, id: found.id };
}

/** The descriptor's own number of hits, or else the number of the whole request. 0 means that it is not set, and counts as 1. */
function hitsOf(descriptor: RateLimitDescriptor | undefined, ofRequest: number): number {
  const own = descriptor?.hitsAddend?.value;
  return own === undefined ? Math.max(1, ofRequest) : numberOf(own);
}

function numberOf(value: WholeNumber): number {
  return typeof value === 'number' ? value : value.toNumber();
}

/** The numbers of envoy.type.v3.RateLimitUnit and of the unit of a response. */
export const UNIT_NUMBERS: Readonly<Record<UnitName, number>> = {
  second: 1,
  minute: 2,
  hour: 3,
  day: 4,
  week: 7,
  month: 5,
};

const UNITS = new Map(Object.entries(UNIT_NUMBERS).map(([name, number]) => [number, name as UnitName]));

/** The limit that a descriptor carries. It replaces the limit of a rule. */
function overridden({ requestsPerUnit, unit: number, unitMultiplier }: RateLimitOverride): DescriptorLimit {
  const unit = UNITS.get(number);
  if (unit === undefined) throw new InvalidRequest(`The limit of a descriptor has the unit ${number}.`);
  const windowSeconds = UNIT_SECONDS[unit] * Math.max(1, numberOf(unitMultiplier?.value ?? 1));
  if (windowSeconds > LONGEST_WINDOW_SECONDS)
    throw new InvalidRequest('The limit of a descriptor has a longer window than 31 days.');
  return {
    ...{
      label: 'override',
      headerName: 'override',
      name: '',
      unit,
      windowSeconds,
      replaces: [],
      mode: 'enforced',
      spendsRest: false,
    },
    requestsPerUnit: Math.min(requestsPerUnit, MOST_REQUESTS),
  };
}

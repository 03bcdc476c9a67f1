import { LRUCache } from 'lru-cache';
import { type BucketName, type Limits, limitInForce } from '../config/limits.ts';
import { bucketKey } from '../store/keys.ts';
import type { BucketCharge } from '../store/store.ts';
import type { Caller, OperationKind } from './types.ts';

/** What one caller's reads or writes are charged to. */
export interface Plan {
  /** The buckets that a request spends from, Account first. */
  readonly buckets: readonly BucketCharge[];
  /** The names of those buckets in the RateLimit header, in the same order. */
  readonly headerNames: readonly string[];
  /** Their names in a 429's `extensions.bucket`: a Person's own differ from what the headers show. */
  readonly bucketNames: readonly string[];
  /** The whole RateLimit-Policy header: every bucket that applies, reads and writes. */
  readonly policy: string;
  readonly windowSeconds: number;
}

interface NamedBucket {
  readonly headerName: string;
  readonly bucketName: string;
  readonly charge: BucketCharge;
  /** When the override that this limit comes from ends, in Unix time. */
  readonly untilMs: number;
}

interface Plans extends Readonly<Record<OperationKind, Plan>> {
  readonly validUntilMs: number;
}

/** Plans kept ready; past that the least recently used is worked out again. */
const PLANS_KEPT = 50_000;

/** Which buckets apply to a caller and with which limits: the limits file in force, made ready per Account. */
export class Buckets {
  readonly #keyPrefix: string;
  readonly #plans = new LRUCache<string, Plans>({ max: PLANS_KEPT });
  #limits: Limits;

  constructor(keyPrefix: string, limits: Limits) {
    this.#keyPrefix = keyPrefix;
    this.#limits = limits;
  }

  get limits(): Limits {
    return this.#limits;
  }

  /** Puts other limits in force; the counts stay, because keys do not depend on limits. */
  replaceLimits(limits: Limits): void {
    this.#limits = limits;
    this.#plans.clear();
  }

  /** The plan of a caller's read or write; with `personOnly` the Person's own buckets (contract 8.1 rule 2). */
  planFor(caller: Caller, kind: OperationKind, personOnly: boolean): Plan {
    const nowMs = Date.now();
    const cacheKey = personOnly
      ? `person\n${caller.shard}\n${caller.principal.id}`
      : `${caller.hasOrganizationLimit ? 'both' : 'account'}\n${caller.shard}\n${caller.account}`;
    let plans = this.#plans.get(cacheKey);
    if (plans === undefined || plans.validUntilMs <= nowMs) {
      plans = this.#plansOf(caller, personOnly, nowMs);
      this.#plans.set(cacheKey, plans);
    }
    return plans[kind];
  }

  #plansOf(caller: Caller, personOnly: boolean, nowMs: number): Plans {
    const spent = (kind: OperationKind) =>
      personOnly ? this.#personBuckets(caller, kind, nowMs) : this.#accountBuckets(caller, kind, nowMs);
    return plansOf(spent('read'), spent('write'), this.#limits.windowSeconds);
  }

  #accountBuckets(
    { account, organization, hasOrganizationLimit, shard }: Caller,
    kind: OperationKind,
    nowMs: number,
  ): NamedBucket[] {
    const ofAccount = `account-${kind}` as const;
    const buckets = this.#bucket(ofAccount, ofAccount, shard, account, nowMs);
    if (organization === undefined || !hasOrganizationLimit) return buckets;
    const ofOrganization = `organization-${kind}` as const;
    return [...buckets, ...this.#bucket(ofOrganization, ofOrganization, shard, organization, nowMs)];
  }

  #personBuckets({ principal, shard }: Caller, kind: OperationKind, nowMs: number): NamedBucket[] {
    return this.#bucket(`account-${kind}`, `person-${kind}`, shard, principal.id, nowMs);
  }

  /** The one bucket, or none where no such limit applies. */
  #bucket(headerName: string, name: BucketName, shard: string, id: string, nowMs: number): NamedBucket[] {
    const inForce = limitInForce(this.#limits, name, id, nowMs);
    if (inForce === undefined) return [];
    const { limit, shadow, untilMs = Number.POSITIVE_INFINITY } = inForce;
    const key = bucketKey(this.#keyPrefix, shard, name, id);
    return [
      { headerName, bucketName: name, charge: shadow ? { key, limit, shadow } : { key, limit }, untilMs },
    ];
  }
}

function plansOf(read: readonly NamedBucket[], write: readonly NamedBucket[], windowSeconds: number): Plans {
  const policy = policyOrder(read, write)
    .map(({ headerName, charge }) => `"${headerName}";q=${charge.limit};w=${windowSeconds}`)
    .join(', ');
  const plan = (spent: readonly NamedBucket[]): Plan => ({
    buckets: spent.map((bucket) => bucket.charge),
    headerNames: spent.map((bucket) => bucket.headerName),
    bucketNames: spent.map((bucket) => bucket.bucketName),
    windowSeconds,
    policy,
  });
  const validUntilMs = Math.min(...[...read, ...write].map((bucket) => bucket.untilMs));
  return { read: plan(read), write: plan(write), validUntilMs };
}

/** Account buckets first, reads before writes. */
function policyOrder(read: readonly NamedBucket[], write: readonly NamedBucket[]): readonly NamedBucket[] {
  const both = [...read, ...write];
  const isShared = (bucket: NamedBucket) => bucket.headerName.startsWith('organization');
  return [...both.filter((bucket) => !isShared(bucket)), ...both.filter(isShared)];
}

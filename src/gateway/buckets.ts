import { LRUCache } from 'lru-cache';
import type { Caller } from '../domain/caller.ts';
import { type BucketName, type Limits, limitInForce } from '../domain/limits.ts';
import type { OperationKind } from '../domain/operation.ts';
import { bucketKey } from '../store/keys.ts';
import type { BucketCharge } from '../store/store.ts';

/** What one caller's reads or writes are charged to. */
export interface Plan {
  /** The buckets that a request spends from, Account first. */
  readonly buckets: readonly BucketCharge[];
  /** The names of those buckets in the RateLimit header, in the same order. */
  readonly headerNames: readonly string[];
  /** Their names in a 429's `extensions.bucket`: a Person's own differ from what the headers show. */
  readonly bucketNames: readonly string[];
  /** The whole RateLimit-Policy header: every bucket that can refuse, reads and writes. */
  readonly policy: string;
  readonly windowSeconds: number;
}

interface NamedBucket {
  readonly headerName: string;
  readonly bucketName: string;
  readonly charge: BucketCharge;
}

/** Buckets that a request spends from, and until when (Unix time) they are the right ones. */
interface Spent {
  readonly buckets: readonly NamedBucket[];
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
  readonly #nowMs: () => number;
  readonly #plans = new LRUCache<string, Plans>({ max: PLANS_KEPT });
  #limits: Limits;

  /** @param nowMs Unix time, by which overrides end */
  constructor(keyPrefix: string, limits: Limits, nowMs: () => number = Date.now) {
    this.#keyPrefix = keyPrefix;
    this.#nowMs = nowMs;
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
    const nowMs = this.#nowMs();
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
  ): Spent {
    const ofAccount = `account-${kind}` as const;
    const own = this.#bucket(ofAccount, ofAccount, shard, account, nowMs);
    if (organization === undefined || !hasOrganizationLimit) return own;
    const ofOrganization = `organization-${kind}` as const;
    const shared = this.#bucket(ofOrganization, ofOrganization, shard, organization, nowMs);
    return {
      buckets: [...own.buckets, ...shared.buckets],
      untilMs: Math.min(own.untilMs, shared.untilMs),
    };
  }

  #personBuckets({ principal, shard }: Caller, kind: OperationKind, nowMs: number): Spent {
    return this.#bucket(`account-${kind}`, `person-${kind}`, shard, principal.id, nowMs);
  }

  /** The bucket of the limit in force and that of the limit that is tried out beside it, as far as there are any. */
  #bucket(headerName: string, name: BucketName, shard: string, id: string, nowMs: number): Spent {
    const { limit, shadowLimit, untilMs } = limitInForce(this.#limits, name, id, nowMs);
    const keyOf = (bucket: string) => bucketKey(this.#keyPrefix, shard, bucket, id);
    const buckets: NamedBucket[] = [];
    if (limit !== undefined) {
      buckets.push({ headerName, bucketName: name, charge: { key: keyOf(name), limit } });
    }
    if (shadowLimit !== undefined) {
      // It counts what would fit its own limit, so it cannot share a key with the limit in force.
      const charge = { key: keyOf(`${name}-shadow`), limit: shadowLimit, shadow: true };
      buckets.push({ headerName, bucketName: name, charge });
    }
    return { buckets, untilMs };
  }
}

function plansOf(read: Spent, write: Spent, windowSeconds: number): Plans {
  const policy = policyOrder(read.buckets, write.buckets)
    .filter(({ charge }) => charge.shadow !== true)
    .map(({ headerName, charge }) => `"${headerName}";q=${charge.limit};w=${windowSeconds}`)
    .join(', ');
  const plan = ({ buckets }: Spent): Plan => ({
    buckets: buckets.map((bucket) => bucket.charge),
    headerNames: buckets.map((bucket) => bucket.headerName),
    bucketNames: buckets.map((bucket) => bucket.bucketName),
    windowSeconds,
    policy,
  });
  return { read: plan(read), write: plan(write), validUntilMs: Math.min(read.untilMs, write.untilMs) };
}

/** Account buckets first, reads before writes. */
function policyOrder(read: readonly NamedBucket[], write: readonly NamedBucket[]): readonly NamedBucket[] {
  const both = [...read, ...write];
  const isShared = (bucket: NamedBucket) => bucket.headerName.startsWith('organization');
  return [...both.filter((bucket) => !isShared(bucket)), ...both.filter(isShared)];
}

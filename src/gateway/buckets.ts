import { LRUCache } from 'lru-cache';
import { BUCKETS, type BucketDefinition, type BucketName, type ScopeName } from '../domain/buckets.ts';
import type { Caller } from '../domain/caller.ts';
import { type LimitInForce, type LimitSource, type Limits, limitInForce } from '../domain/limits.ts';
import type { OperationKind } from '../domain/operation.ts';
import { bucketKey } from '../store/keys.ts';
import type { BucketCharge } from '../store/store.ts';

/** The buckets that one caller's reads or writes are charged to. */
export interface Plan {
  /** The buckets that a request spends from, Account first. */
  readonly buckets: readonly PlannedBucket[];
  /** The whole RateLimit-Policy header: every bucket that can refuse, reads and writes. */
  readonly policy: string;
  readonly windowSeconds: number;
  /** Unix time until which these limits hold, unless the limits file changes. */
  readonly validUntilMs: number;
}

/** A bucket to charge, with its name in the response. */
export interface PlannedBucket extends BucketCharge {
  readonly name: BucketName;
  /** Its name in the RateLimit headers: a Person's own bucket appears as the Account's. */
  readonly headerName: string;
  /** The Account, Organization or Person whose bucket it is. */
  readonly owner: string;
  /** Where its limit is set. */
  readonly source: LimitSource;
  /** Unix time until which that limit is valid; infinite if it does not expire. */
  readonly untilMs: number;
}

type Plans = Readonly<Record<OperationKind, Plan>>;

/** Plans kept in memory; beyond that, the least recently used is dropped. */
const PLANS_KEPT = 50_000;

/** The buckets that apply to each caller and their limits, from the current limits file. */
export class Buckets {
  readonly #keyPrefix: string;
  readonly #nowMs: () => number;
  readonly #plans = new LRUCache<string, Plans>({ max: PLANS_KEPT });
  #limits: Limits;

  /** @param nowMs Unix time, for the expiry of overrides */
  constructor(keyPrefix: string, limits: Limits, nowMs: () => number = Date.now) {
    this.#keyPrefix = keyPrefix;
    this.#nowMs = nowMs;
    this.#limits = limits;
  }

  get limits(): Limits {
    return this.#limits;
  }

  /** Replaces the limits. Counts are kept, because keys do not depend on limits. */
  replaceLimits(limits: Limits): void {
    this.#limits = limits;
    this.#plans.clear();
  }

  /** The plan of a caller's read or write; with `personOnly` the Person's own buckets (contract 8.1 rule 2). */
  planFor(caller: Caller, kind: OperationKind, personOnly: boolean): Plan {
    const nowMs = this.#nowMs();
    const cacheKey = personOnly
      ? `person\n${caller.hashTag}\n${caller.principal.id}`
      : `${caller.hasOrganizationLimit ? 'both' : 'account'}\n${caller.hashTag}\n${caller.account}`;
    let plans = this.#plans.get(cacheKey);
    if (plans === undefined || plans[kind].validUntilMs <= nowMs) {
      plans = this.#plansOf(caller, personOnly, nowMs);
      this.#plans.set(cacheKey, plans);
    }
    return plans[kind];
  }

  /** All buckets of one owner, shadow limits included; none where the limits file switches them off. */
  ownedBy(scope: ScopeName, owner: string, hashTag: string): readonly PlannedBucket[] {
    const nowMs = this.#nowMs();
    return BUCKETS.filter(({ scopeName }) => scopeName === scope).flatMap((definition) =>
      this.#bucketsOf(definition, owner, hashTag, limitInForce(this.#limits, definition.name, owner, nowMs)),
    );
  }

  #plansOf(caller: Caller, personOnly: boolean, nowMs: number): Plans {
    const { windowSeconds } = this.#limits;
    const ends: number[] = [];
    const planned = BUCKETS.filter(({ scope }) => scope.isForPersons === personOnly).flatMap((definition) => {
      const owner = definition.scope.ownerOf(caller);
      if (owner === undefined) return [];
      const inForce = limitInForce(this.#limits, definition.name, owner, nowMs);
      ends.push(inForce.untilMs);
      return this.#bucketsOf(definition, owner, caller.hashTag, inForce).map((bucket) => ({
        kind: definition.kind,
        bucket,
      }));
    });
    const policy = planned
      .filter(({ bucket }) => bucket.shadow !== true)
      .map(({ bucket }) => `"${bucket.headerName}";q=${bucket.limit};w=${windowSeconds}`)
      .join(', ');
    const validUntilMs = Math.min(...ends);
    const planOf = (kind: OperationKind): Plan => ({
      buckets: planned.filter((one) => one.kind === kind).map(({ bucket }) => bucket),
      policy,
      windowSeconds,
      validUntilMs,
    });
    return { read: planOf('read'), write: planOf('write') };
  }

  /** The bucket of the limit in force, and that of the shadow limit beside it. */
  #bucketsOf(
    { name, headerName }: BucketDefinition,
    owner: string,
    hashTag: string,
    { limit, limitSource, shadowLimit, shadowSource, untilMs }: LimitInForce,
  ): readonly PlannedBucket[] {
    const never = Number.POSITIVE_INFINITY;
    const endOf = (source: LimitSource) => (source === 'default' ? never : untilMs);
    const enforced = { name, headerName, owner, source: limitSource, untilMs: endOf(limitSource) };
    const tried = { name, headerName, owner, source: shadowSource, untilMs: endOf(shadowSource) };
    const keyOf = (bucket: string) => bucketKey(this.#keyPrefix, hashTag, bucket, owner);
    const buckets: PlannedBucket[] = [];
    if (limit !== undefined) buckets.push({ ...enforced, key: keyOf(name), limit });
    // A shadow bucket counts only what fits its own limit, so it needs its own key.
    if (shadowLimit !== undefined) {
      buckets.push({ ...tried, key: keyOf(`${name}-shadow`), limit: shadowLimit, shadow: true });
    }
    return buckets;
  }
}

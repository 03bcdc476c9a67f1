import { LRUCache } from 'lru-cache';
import { BUCKETS, type BucketDefinition, type BucketName, type ScopeName } from '../domain/buckets.ts';
import type { Payer } from '../domain/caller.ts';
import { type LimitInForce, type LimitSource, type Limits, limitInForce } from '../domain/limits.ts';
import type { Access, OperationKind } from '../domain/operation.ts';
import { type LiveLimit, LiveLimits } from '../shared/live-limits.ts';
import { bucketKey } from '../store/keys.ts';
import type { BucketCharge } from '../store/store.ts';

/** The buckets that one payer's reads or writes are charged to. */
export interface Plan {
  /** The buckets that a request spends from, Account first. */
  readonly buckets: readonly PlannedBucket[];
  /** The whole RateLimit-Policy header: every bucket that can refuse, reads and writes. */
  readonly policy: string;
  /** Unix time until which these limits hold, unless the limits file changes. */
  readonly validUntilMs: number;
}

/** A bucket to charge, with its name in the response. */
export interface PlannedBucket extends BucketCharge {
  readonly name: BucketName;
  /** Its name in the RateLimit headers: a Person's own bucket appears as the Account's. */
  readonly headerName: string;
  /** The Account, Organization, Person or address whose bucket it is. */
  readonly owner: string;
  /** Where its limit is set. */
  readonly source: LimitSource;
  /** Unix time until which that limit is valid; infinite if it does not expire. */
  readonly untilMs: number;
}

interface Plans extends Readonly<Record<OperationKind, Plan>> {
  readonly version: number;
}

/** Plans kept in memory; beyond that, the least recently used is dropped. */
const PLANS_KEPT = 50_000;
/** Plans of addresses are kept apart, so that a flood from many addresses drops none of the callers' plans. */
const ADDRESS_PLANS_KEPT = 5_000;

/** The limits in force of one bucket of one owner, live limits included. */
interface InForce extends LimitInForce {
  /** When a limit of each source expires. */
  readonly ends: Readonly<Record<LimitSource, number>>;
}

/** The buckets that apply to each payer and their limits, from the current limits file and the live limits. */
export class Buckets {
  readonly #keyPrefix: string;
  readonly #nowMs: () => number;
  readonly #plans = new LRUCache<string, Plans>({ max: PLANS_KEPT });
  readonly #addressPlans = new LRUCache<string, Plans>({ max: ADDRESS_PLANS_KEPT });
  /** The live limits, which are changed with `applyLive`. */
  readonly live: Omit<LiveLimits, 'add'>;
  readonly #live = new LiveLimits();
  #limits: Limits;
  /** Plans of an earlier version are made again. */
  #version = 0;

  /** @param nowMs Unix time by the clock that all replicas share, for the expiry of overrides and live limits */
  constructor(keyPrefix: string, limits: Limits, nowMs: () => number = Date.now) {
    this.#keyPrefix = keyPrefix;
    this.#nowMs = nowMs;
    this.#limits = limits;
    this.live = this.#live;
  }

  /** Unix time by the clock of live limits. */
  get nowMs(): number {
    return this.#nowMs();
  }

  get limits(): Limits {
    return this.#limits;
  }

  /** Replaces the limits. Counts are kept, because keys do not depend on limits. */
  replaceLimits(limits: Limits): void {
    this.#limits = limits;
    this.#version += 1;
  }

  /** Applies a live limit or its removal. Returns false if it changes nothing. Counts are kept. */
  applyLive(limit: LiveLimit): boolean {
    const isChanged = this.#live.add(limit, this.#nowMs());
    if (isChanged) this.#version += 1;
    return isChanged;
  }

  /** The plan of a payer's reads or writes for operations with this access. */
  planFor(payer: Payer, kind: OperationKind, access: Access): Plan {
    const nowMs = this.#nowMs();
    const cache = access === 'public' ? this.#addressPlans : this.#plans;
    const cacheKey = cacheKeyOf(payer, access);
    let plans = cache.get(cacheKey);
    if (plans?.version !== this.#version || plans[kind].validUntilMs <= nowMs) {
      plans = this.#plansOf(payer, access, nowMs);
      cache.set(cacheKey, plans);
    }
    return plans[kind];
  }

  /** All buckets of one owner, shadow limits included; none where the limits file switches them off. */
  ownedBy(scope: ScopeName, owner: string, hashTag: string): readonly PlannedBucket[] {
    const nowMs = this.#nowMs();
    return BUCKETS.filter(({ scopeName }) => scopeName === scope).flatMap((definition) =>
      this.#bucketsOf(definition, owner, hashTag, this.#inForce(definition.name, owner, nowMs)),
    );
  }

  #plansOf(payer: Payer, access: Access, nowMs: number): Plans {
    const ends: number[] = [];
    const planned = BUCKETS.filter(({ scope }) => scope.access === access).flatMap((definition) => {
      const owner = definition.scope.ownerOf(payer);
      if (owner === undefined) return [];
      const inForce = this.#inForce(definition.name, owner, nowMs);
      ends.push(inForce.untilMs);
      return this.#bucketsOf(definition, owner, payer.hashTag, inForce).map((bucket) => ({
        kind: definition.kind,
        bucket,
      }));
    });
    const policy = planned
      .filter(({ bucket }) => bucket.shadow !== true)
      .map(({ bucket }) => `"${bucket.headerName}";q=${bucket.limit};w=${bucket.windowSeconds}`)
      .join(', ');
    const validUntilMs = Math.min(...ends);
    const planOf = (kind: OperationKind): Plan => ({
      buckets: planned.filter((one) => one.kind === kind).map(({ bucket }) => bucket),
      policy,
      validUntilMs,
    });
    return { version: this.#version, read: planOf('read'), write: planOf('write') };
  }

  /** A live limit takes the place of the one in the files; a shadow limit in the files stays beside it. */
  #inForce(bucket: BucketName, owner: string, nowMs: number): InForce {
    const filed = limitInForce(this.#limits, bucket, owner, nowMs);
    const live = this.#live.of(bucket, owner, nowMs);
    const never = Number.POSITIVE_INFINITY;
    const ends = { default: never, override: filed.untilMs, live: live?.untilMs ?? never };
    if (live === undefined) return { ...filed, ends };
    const untilMs = Math.min(filed.untilMs, live.untilMs);
    return { ...filed, limit: live.limit, limitSource: 'live', untilMs, ends };
  }

  /** The bucket of the limit in force, and that of the shadow limit beside it. */
  #bucketsOf(
    { name, headerName }: BucketDefinition,
    owner: string,
    hashTag: string,
    { limit, limitSource, shadowLimit, shadowSource, ends }: InForce,
  ): readonly PlannedBucket[] {
    const { windowSeconds } = this.#limits;
    const common = { name, headerName, owner, windowSeconds };
    const enforced = { ...common, source: limitSource, untilMs: ends[limitSource] };
    const tried = { ...common, source: shadowSource, untilMs: ends[shadowSource] };
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

function cacheKeyOf(payer: Payer, access: Access): string {
  if (payer.address !== undefined) return payer.address;
  return access === 'person'
    ? `person\n${payer.hashTag}\n${payer.principal.id}`
    : `${payer.hasOrganizationLimit ? 'both' : 'account'}\n${payer.hashTag}\n${payer.account}`;
}

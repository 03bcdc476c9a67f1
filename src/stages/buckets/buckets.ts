import { LRUCache } from 'lru-cache';
import type { Caller, Payer, Principal } from '../../domain/caller.ts';
import {
  type AssignedPlan,
  type Limits,
  limitInForce,
  NEVER,
  type OwnerTerms,
  startOfMonths,
} from '../../domain/limits/limits.ts';
import { type LimitRow, largestLimitOf } from '../../domain/limits/rows.ts';
import { type ScopeName, scopeNamed } from '../../domain/limits/scopes.ts';
import type { Access } from '../../domain/operation.ts';
import type { Refusal } from '../../domain/problems.ts';
import type { Priced } from '../../domain/settlement/settlement.ts';
import { type LiveLimit, LiveLimits } from '../../facts/live-limits.ts';
import { isConcurrent } from '../../store/store.ts';
import type { LastPayer } from '../last-payer.ts';
import type { Operation } from '../request-context.ts';
import {
  type InForce,
  isValid,
  type PayerBucket,
  type PresentRow,
  payerBucketsOf,
  presentRow,
  type RowSet,
  RowSets,
} from './payer-bucket.ts';
import { type BucketOwner, homeOf, monthsOfPrincipal, planOfOwner, plansOf } from './plans.ts';
import { onlyThose, policyText, type Reportable, type ReportedLimit } from './rate-limit-fields.ts';
import { isNamed, Templates } from './templates.ts';

/** The buckets that one payer's requests for some operations are charged to. */
export interface PayerBuckets extends Reportable {
  /** The buckets that a request spends from, Account first. */
  readonly buckets: readonly PayerBucket[];
  /** Of a charge to these buckets; undefined where no other payer has the same. */
  readonly kind?: object | undefined;
  /** The plan whose limits apply to the Account; undefined without one. */
  readonly plan: string | undefined;
  /** The plan that the token or the directory names, and the limits do not have. */
  readonly unknownPlan: string | undefined;
  /** Unix time until which these limits hold, unless the limits file changes. */
  readonly validUntilMs: number;
  /**
   * The same without limits on concurrent requests, for proxies that do not report the end of a request. Undefined where there are no
   * such limits.
   */
  readonly endless?: PayerBuckets | undefined;
}

/** The last refusal by a bucket. */
interface LastRefusal {
  /** The bucket, or the one that it copies. */
  readonly bucket: PayerBucket;
  readonly isPart: boolean;
  readonly costPoints: number;
  readonly remaining: number;
  readonly seconds: number;
  /** The limits that had no room, as one text. Empty with the fields of the contract. */
  readonly violated: string;
  readonly refusal: Refusal;
}

/** Owners kept in memory; beyond that, the least recently used is dropped. */
const PAYERS_KEPT = 50_000;
/** Addresses are kept apart, so that a flood from many addresses drops none of the callers. */
const ADDRESSES_KEPT = 5_000;

/** Buckets whose last refusal is kept. */
const REFUSALS_KEPT = 5_000;

/** What is known of one payer. Buckets of an earlier version are made again. */
interface Known {
  readonly version: number;
  readonly bySet: Map<RowSet, PayerBuckets>;
}

/** The buckets that apply to each payer and their limits, from the current limits file and the live limits. */
export class Buckets {
  readonly #keyPrefix: string;
  readonly #nowMs: () => number;
  /** Made when they are needed, because each allocates all of its places at once. */
  #payers: LRUCache<string, Known> | undefined;
  #addresses: LRUCache<string, Known> | undefined;
  /** In a flood all refusals by a bucket are the same, so they are built once. By key. */
  readonly lastRefusals = new LRUCache<string, LastRefusal>({ max: REFUSALS_KEPT });
  /** The live limits, which are changed with `applyLive`. */
  readonly live: Omit<LiveLimits, 'add'>;
  readonly #live = new LiveLimits();
  #limits: Limits;
  #rowSets: RowSets;
  /** What clients see of the limits: what the contract names, or also what the draft of the RateLimit fields defines. */
  readonly fields: 'contract' | 'draft';
  /** The most expensive operation that is charged to each row. */
  #costliest: ReadonlyMap<string, Priced> = new Map();
  #inPoints: ReadonlySet<string> = new Set();
  #version = 0;
  #templates: Templates;

  /** @param nowMs Unix time by the clock that all replicas share, for the expiry of overrides and live limits */
  constructor(
    keyPrefix: string,
    limits: Limits,
    nowMs: () => number = Date.now,
    fields: Buckets['fields'] = 'contract',
  ) {
    this.#keyPrefix = keyPrefix;
    this.fields = fields;
    this.#nowMs = nowMs;
    this.#limits = limits;
    this.#rowSets = new RowSets(limits.rows);
    this.live = this.#live;
    this.#templates = this.#openTemplates();
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
    this.#rowSets = new RowSets(limits.rows);
    this.#changed();
  }

  /**
   * Replaces the most expensive operation of each row, by the row's name. No live limit is below its cost.
   *
   * @param inPoints the rows that count points, where not every request costs one
   */
  replaceCosts(costliest: ReadonlyMap<string, Priced>, inPoints: ReadonlySet<string> = new Set()): void {
    this.#costliest = costliest;
    this.#inPoints = inPoints;
    this.#changed();
  }

  costliest(row: string): Priced | undefined {
    return this.#costliest.get(row);
  }

  /** Applies a live limit or its removal. Returns false if it changes nothing. Counts are kept. */
  applyLive(limit: LiveLimit): boolean {
    const isChanged = this.#live.add(limit, this.#nowMs());
    if (isChanged) this.#changed();
    return isChanged;
  }

  /**
   * Forgets which limits apply to whom. Call it when the clock has been set back: buckets without an end are valid whatever the time, also
   * if a limit was left out because it had ended by the wrong clock. Counts are kept.
   */
  forget(): void {
    this.#changed();
  }

  /**
   * The buckets that this payer's requests for an operation are charged to.
   *
   * @param last whom the last request of the connection was charged to
   */
  bucketsFor(payer: Payer, operation: Operation, last?: LastPayer): PayerBuckets {
    const set = this.#rowSets.of(operation);
    const same = last?.bucketsOf(payer, set, this.#version);
    if (same !== undefined && isValid(same, this.#nowMs)) return same;
    const buckets = this.#areAlike(payer) ? this.#templates.like(payer, set) : this.#known(payer, set);
    last?.keepBuckets(payer, set, this.#version, buckets);
    return buckets;
  }

  /** Whether this payer has the same limits as all others of its kind. */
  #areAlike(payer: Payer): payer is Caller {
    return payer.address === undefined && this.#live.size === 0 && !isNamed(this.#limits, payer);
  }

  #changed(): void {
    this.#version += 1;
    this.#templates = this.#openTemplates();
  }

  #openTemplates(): Templates {
    return new Templates({
      keyPrefix: this.#keyPrefix,
      nowMs: this.#nowMs,
      make: (caller, set) => this.#make(caller, set, this.#nowMs()),
    });
  }

  #known(payer: Payer, set: RowSet): PayerBuckets {
    const cache = this.#cacheFor(payer);
    const cacheKey = cacheKeyOf(payer, set);
    let known = cache.get(cacheKey);
    if (known?.version !== this.#version) {
      known = { version: this.#version, bySet: new Map() };
      cache.set(cacheKey, known);
    }
    let buckets = known.bySet.get(set);
    if (buckets === undefined || !isValid(buckets, this.#nowMs)) {
      buckets = this.#make(payer, set, this.#nowMs());
      known.bySet.set(set, buckets);
    }
    return buckets;
  }

  #cacheFor(payer: Payer): LRUCache<string, Known> {
    if (payer.address === undefined) {
      this.#payers ??= new LRUCache({ max: PAYERS_KEPT });
      return this.#payers;
    }
    this.#addresses ??= new LRUCache({ max: ADDRESSES_KEPT });
    return this.#addresses;
  }

  /** All buckets that requests of this payer can be charged to. */
  bucketsOf(payer: Payer, access: Access): PayerBuckets {
    return this.#make(payer, this.#rowSets.whole(access), this.#nowMs());
  }

  /** All buckets of one owner, shadow limits included; none where the limits file switches them off. */
  ownedBy(scope: ScopeName, id: string, owner: BucketOwner): readonly PayerBucket[] {
    const nowMs = this.#nowMs();
    const isPrincipal = scopeNamed(scope).isPerPrincipal;
    return this.#limits.rows
      .filter((row) => row.scope === scope || (isPrincipal && row.scope === 'principal'))
      .flatMap((row) => {
        // A Person's own buckets have no plan; its limits per principal do.
        const planned = planOfOwner(this.#limits, row.scope, id, owner, nowMs);
        const inForce = this.#inForce(row, id, planned, nowMs);
        const present = this.#present(row, id, owner, nowMs);
        return payerBucketsOf(present, id, inForce, this.#keyPrefix, owner.hashTag);
      });
  }

  /** The name of an owner's plan; undefined without one. */
  planOf(scope: ScopeName, id: string, owner: OwnerTerms): string | undefined {
    return planOfOwner(this.#limits, scope, id, owner, this.#nowMs())?.name;
  }

  #make(payer: Payer, set: RowSet, nowMs: number): PayerBuckets {
    const plans = plansOf(this.#limits, payer, nowMs);
    let validUntilMs = plans.untilMs;
    const buckets: PayerBucket[] = [];
    const policyItems: ReportedLimit[] = [];
    for (const row of set.policy) {
      const owner = scopeNamed(row.scope).ownerOf(payer);
      if (owner === undefined) continue;
      const inForce = this.#inForce(row, owner, plans.ofScope(row.scope), nowMs);
      const present = this.#present(row, owner, payer, nowMs);
      validUntilMs = Math.min(validUntilMs, inForce.untilMs, present.span?.endMs ?? NEVER);
      const { limit } = inForce;
      if (limit !== undefined) {
        const saysPoints = this.fields === 'draft' && this.#inPoints.has(row.name);
        policyItems.push({ ...present, limit, saysPoints });
      }
      if (set.charged.has(row))
        buckets.push(...payerBucketsOf(present, owner, inForce, this.#keyPrefix, payer.hashTag));
    }
    const { account, unknown } = plans;
    const policy = policyText(policyItems);
    const all: PayerBuckets = {
      buckets,
      policyItems,
      policy,
      plan: account?.name,
      unknownPlan: unknown,
      validUntilMs,
      // Copies replace them: see wholeBucket.
      kind: undefined,
      endless: undefined,
    };
    const isEndless = (one: ReportedLimit) => !isConcurrent(one);
    return buckets.every(isEndless) ? all : { ...all, endless: onlyThose(all, isEndless) };
  }

  #present(row: LimitRow, owner: string, payer: BucketOwner, nowMs: number): PresentRow {
    const { overrides } = scopeNamed(row.scope);
    return presentRow(row, nowMs, () => {
      const months = overrides === 'principals' ? monthsOfPrincipal(payer) : payer;
      return startOfMonths(this.#limits, overrides, owner, months);
    });
  }

  /** A live limit replaces the limit in the files; a shadow limit in the files stays beside it. */
  #inForce(row: LimitRow, owner: string, planned: AssignedPlan | undefined, nowMs: number): InForce {
    const filed = limitInForce(this.#limits, row, owner, planned, nowMs);
    const live = this.#live.of(row.name, owner, nowMs);
    const ends = {
      default: NEVER,
      plan: planned?.untilMs ?? NEVER,
      override: filed.untilMs,
      live: live?.untilMs ?? NEVER,
    };
    const plan = planned?.name;
    if (live === undefined) return { ...filed, ends, plan };
    const untilMs = Math.min(filed.untilMs, live.untilMs);
    const least = this.#costliest.get(row.name)?.cost ?? 0;
    const limit = Math.min(Math.max(live.limit, least), largestLimitOf(row));
    return { ...filed, limit, limitSource: 'live', untilMs, ends, plan };
  }
}

/** Payers with equal keys have the same buckets and the same plan in this row set. */
function cacheKeyOf(payer: Payer, { access, isPerPrincipal }: RowSet): string {
  if (payer.address !== undefined) return payer.address;
  const { hashTag, principal, account, organization, hasOrganizationLimit, periodStartsOn } = payer;
  const plan = periodStartsOn === undefined ? (payer.plan ?? '') : `${payer.plan ?? ''}\n${periodStartsOn}`;
  const scopes = hasOrganizationLimit ? 'both' : 'account';
  const own = `${scopes}\n${hashTag}\n${organization ?? ''}\n${account}\n${plan}`;
  if (access !== 'person' && !isPerPrincipal) return own;
  const person = `${principal.type}\n${principal.id}\n${homeOf(principal).plan ?? ''}`;
  return `${own}\n${person}${ownMonthsOf(principal, account)}`;
}

/** What a principal's own months depend on, besides the Account that it acts for. */
function ownMonthsOf(principal: Principal, acting: string): string {
  const { account, periodStartsOn } = principal.home ?? principal;
  if (account === acting && periodStartsOn === undefined) return '';
  return `\n${account ?? ''}\n${periodStartsOn ?? ''}`;
}

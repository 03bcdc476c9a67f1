import { type BucketDefinition, bucketsFor } from '../domain/buckets.ts';
import type { Caller } from '../domain/caller.ts';
import type { OperationKind } from '../domain/operation.ts';
import type { Plan } from '../gateway/buckets.ts';
import type { Entry } from './input/entry.ts';
import { BucketStats } from './measure/bucket-stats.ts';

/** The buckets that requests are charged to: those of an Account and its Organization, or of a Person. */
export interface Payer {
  readonly caller: Caller;
  readonly kind: OperationKind;
  readonly personOnly: boolean;
  /** Every bucket of its requests, including those without a limit, in the order of the bucket table. */
  readonly buckets: readonly BucketStats[];
  /** The plan that `planned` belongs to. */
  plan: Plan | undefined;
  /** The statistics of the buckets of the plan, in the same order. */
  planned: readonly BucketStats[];
}

type Payers = Partial<Record<OperationKind, Payer>> & { readonly organization: string | undefined };

const NOBODY: ReadonlySet<string> = new Set();

/** All payers of a log and the statistics of their buckets. */
export class PayerBook {
  readonly stats: BucketStats[] = [];
  readonly #windowUs: number;
  readonly #hasSeries: boolean;
  readonly #byKey = new Map<string, BucketStats>();
  readonly #accounts = new Map<string, Payers>();
  readonly #persons = new Map<string, Payers>();

  /** @param hasSeries whether each bucket is also recorded over time, for charts */
  constructor(windowUs: number, hasSeries: boolean) {
    this.#windowUs = windowUs;
    this.#hasSeries = hasSeries;
  }

  payerOf(entry: Entry): Payer {
    const { personOnly, principal, account, kind } = entry;
    const map = personOnly ? this.#persons : this.#accounts;
    const id = personOnly ? principal : account;
    const organization = personOnly ? undefined : entry.organization;
    let payers = map.get(id);
    // After an Account has moved to another Organization, its requests are charged to the new one.
    if (payers === undefined || payers.organization !== organization) {
      payers = { organization };
      map.set(id, payers);
    }
    payers[kind] ??= this.#createPayer(entry, organization);
    return payers[kind];
  }

  #createPayer({ personOnly, principal, account, kind }: Entry, organization: string | undefined): Payer {
    const caller: Caller = {
      principal: { type: 'Person', id: principal, account, actsFor: NOBODY },
      account,
      organization,
      hasOrganizationLimit: organization !== undefined,
      // A Person's bucket does not depend on an Organization, which may differ from the target Account's.
      hashTag: personOnly ? principal : (organization ?? account),
    };
    const buckets = bucketsFor(kind, personOnly).flatMap((bucket) => {
      const owner = bucket.scope.ownerOf(caller);
      return owner === undefined ? [] : [this.#statsOf(bucket, owner)];
    });
    return { caller, kind, personOnly, buckets, plan: undefined, planned: [] };
  }

  #statsOf(bucket: BucketDefinition, owner: string): BucketStats {
    const key = `${bucket.name}\n${owner}`;
    let stats = this.#byKey.get(key);
    if (stats === undefined) {
      stats = new BucketStats(bucket, owner, this.#windowUs, this.#hasSeries);
      this.#byKey.set(key, stats);
      this.stats.push(stats);
    }
    return stats;
  }
}

/** Records the limits of a new plan. */
export function bindPlan(payer: Payer, plan: Plan): void {
  payer.plan = plan;
  for (const stats of payer.buckets) {
    stats.limit = undefined;
    stats.shadowLimit = undefined;
  }
  payer.planned = plan.buckets.map(({ name, limit, shadow }) => {
    const stats = payer.buckets.find((bucket) => bucket.name === name);
    if (stats === undefined) throw new Error(`a request spends from ${name} unexpectedly`);
    if (shadow) stats.shadowLimit = limit;
    else stats.limit = limit;
    return stats;
  });
}

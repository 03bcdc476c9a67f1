import { type BucketDefinition, bucketsFor } from '../domain/buckets.ts';
import type { Caller, PublicClient } from '../domain/caller.ts';
import type { Access, OperationKind } from '../domain/operation.ts';
import type { Plan } from '../stages/buckets.ts';
import type { Entry } from './input/entry.ts';
import { BucketStats } from './measure/bucket-stats.ts';

/** The buckets that requests are charged to: those of an Account and its Organization, of a Person, or of an address. */
export interface MeasuredPayer {
  readonly caller: Caller | PublicClient;
  readonly kind: OperationKind;
  readonly access: Access;
  /** Every bucket of its requests, including those without a limit, in the order of the bucket table. */
  readonly buckets: readonly BucketStats[];
  /** The plan that `planned` belongs to. */
  plan: Plan | undefined;
  /** The statistics of the buckets of the plan, in the same order. */
  planned: readonly BucketStats[];
}

type MeasuredPayers = Partial<Record<OperationKind, MeasuredPayer>> & {
  readonly organization: string | undefined;
};

const NOBODY: ReadonlySet<string> = new Set();

/** All payers of a log and the statistics of their buckets. */
export class PayerBook {
  readonly stats: BucketStats[] = [];
  readonly #windowUs: number;
  readonly #hasSeries: boolean;
  readonly #byKey = new Map<string, BucketStats>();
  readonly #payers: Readonly<Record<Access, Map<string, MeasuredPayers>>> = {
    caller: new Map(),
    person: new Map(),
    public: new Map(),
  };

  /** @param hasSeries whether each bucket is also recorded over time, for charts */
  constructor(windowUs: number, hasSeries: boolean) {
    this.#windowUs = windowUs;
    this.#hasSeries = hasSeries;
  }

  payerOf(entry: Entry): MeasuredPayer {
    const { access, kind } = entry;
    const map = this.#payers[access];
    const id = idOf(entry);
    const organization = access === 'caller' ? entry.organization : undefined;
    let payers = map.get(id);
    // After an Account has moved to another Organization, its requests are charged to the new one.
    if (payers === undefined || payers.organization !== organization) {
      payers = { organization };
      map.set(id, payers);
    }
    payers[kind] ??= this.#createPayer(entry, organization);
    return payers[kind];
  }

  #createPayer(entry: Entry, organization: string | undefined): MeasuredPayer {
    const { access, kind } = entry;
    const caller = callerOf(entry, organization);
    const buckets = bucketsFor(kind, access).flatMap((bucket) => {
      const owner = bucket.scope.ownerOf(caller);
      return owner === undefined ? [] : [this.#statsOf(bucket, owner)];
    });
    return { caller, kind, access, buckets, plan: undefined, planned: [] };
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

function idOf({ access, account, principal, address = '' }: Entry): string {
  return { caller: account, person: principal, public: address }[access];
}

function callerOf(entry: Entry, organization: string | undefined): Caller | PublicClient {
  const { access, principal, account } = entry;
  if (access === 'public') return { address: idOf(entry), hashTag: idOf(entry) };
  return {
    principal: { type: 'Person', id: principal, account, actsFor: NOBODY },
    account,
    organization,
    hasOrganizationLimit: organization !== undefined,
    // A Person's bucket does not depend on an Organization, which may differ from the target Account's.
    hashTag: access === 'person' ? principal : (organization ?? account),
  };
}

/** Records the limits of a new plan. */
export function bindPlan(payer: MeasuredPayer, plan: Plan): void {
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

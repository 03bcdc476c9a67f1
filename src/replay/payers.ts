import type { Caller, PublicClient } from '../domain/caller.ts';
import { isCharged, type LimitRow } from '../domain/limits/rows.ts';
import { scopeNamed } from '../domain/limits/scopes.ts';
import type { Access } from '../domain/operation.ts';
import type { PayerBuckets } from '../stages/buckets/buckets.ts';
import type { Operation } from '../stages/request-context.ts';
import type { LogEntry } from './input/entry.ts';
import { BucketStats } from './measure/bucket-stats.ts';

/** The buckets that the requests of one payer for one operation are charged to. */
export interface MeasuredPayer {
  readonly caller: Caller | PublicClient;
  readonly operation: Operation;
  /** Every bucket of its requests, including those without a limit, in the order of the rows. */
  readonly buckets: readonly BucketStats[];
  /** The buckets with the limits in force, which `measured` belongs to. */
  due: PayerBuckets | undefined;
  /** The statistics of the buckets of `due`, in the same order. */
  measured: readonly BucketStats[];
}

const NOBODY: ReadonlySet<string> = new Set();

/** All payers of a log and the statistics of their buckets. */
export class PayerBook {
  readonly stats: BucketStats[] = [];
  /** Those that were paid for. */
  readonly operations = new Set<Operation>();
  readonly #rows: readonly LimitRow[];
  readonly #hasSeries: boolean;
  readonly #isPerPrincipal: boolean;
  readonly #byKey = new Map<string, BucketStats>();
  readonly #payers: Readonly<
    Record<
      Access,
      Map<
        string,
        {
          readonly caller: Caller | PublicClient;
          readonly byOperation: Map<Operation, MeasuredPayer>;
        }
      >
    >
  > = {
    caller: new Map(),
    person: new Map(),
    public: new Map(),
  };

  /** @param hasSeries whether each bucket is also recorded over time, for charts */
  constructor(rows: readonly LimitRow[], hasSeries: boolean) {
    this.#rows = rows;
    this.#hasSeries = hasSeries;
    this.#isPerPrincipal = rows.some(
      ({ scope, isContract }) => !isContract && scopeNamed(scope).isPerPrincipal,
    );
  }

  payerOf(entry: LogEntry): MeasuredPayer {
    const { operation } = entry;
    const { access } = operation;
    const map = this.#payers[access];
    const id = this.#idOf(entry);
    const organization = access === 'caller' ? entry.organization : undefined;
    let payers = map.get(id);
    // After an Account has moved to another Organization or plan, its requests are charged accordingly.
    if (
      payers === undefined ||
      payers.caller.organization !== organization ||
      payers.caller.plan !== entry.plan
    ) {
      payers = { caller: callerOf(entry, organization), byOperation: new Map() };
      map.set(id, payers);
    }
    let payer = payers.byOperation.get(operation);
    if (payer === undefined) {
      payer = this.#createPayer(payers.caller, operation);
      payers.byOperation.set(operation, payer);
    }
    return payer;
  }

  #idOf(entry: LogEntry): string {
    const { account, principal } = entry;
    const isOfBoth = entry.operation.access === 'caller' && this.#isPerPrincipal;
    return isOfBoth ? `${account}\n${principal}` : payingId(entry);
  }

  #createPayer(caller: Caller | PublicClient, operation: Operation): MeasuredPayer {
    this.operations.add(operation);
    const buckets = this.#rows.flatMap((row) => {
      const owner = isCharged(row, operation) ? scopeNamed(row.scope).ownerOf(caller) : undefined;
      return owner === undefined ? [] : [this.#statsOf(row, owner)];
    });
    return { caller, operation, buckets, due: undefined, measured: [] };
  }

  #statsOf(row: LimitRow, owner: string): BucketStats {
    const key = `${row.name}\n${owner}`;
    let stats = this.#byKey.get(key);
    if (stats === undefined) {
      stats = new BucketStats(row, owner, this.#hasSeries);
      this.#byKey.set(key, stats);
      this.stats.push(stats);
    }
    return stats;
  }
}

function payingId({ operation, account, principal, address = '' }: LogEntry): string {
  return { caller: account, person: principal, public: address }[operation.access];
}

function callerOf(entry: LogEntry, organization: string | undefined): Caller | PublicClient {
  const { operation, principal, account, plan } = entry;
  const { access } = operation;
  if (access === 'public') return { address: payingId(entry), hashTag: payingId(entry) };
  return {
    principal: { type: 'Person', id: principal, account, actsFor: NOBODY },
    account,
    organization,
    hasOrganizationLimit: organization !== undefined,
    plan,
    // A Person's bucket does not depend on an Organization, which may differ from the target Account's.
    hashTag: access === 'person' ? principal : (organization ?? account),
  };
}

/** Records the limits in force. */
export function bindLimits(payer: MeasuredPayer, due: PayerBuckets): void {
  payer.due = due;
  for (const stats of payer.buckets) {
    stats.limit = undefined;
    stats.shadowLimit = undefined;
  }
  payer.measured = due.buckets.map(({ name, limit, shadow }) => {
    const stats = payer.buckets.find((bucket) => bucket.name === name);
    if (stats === undefined) throw new Error(`a request spends from ${name} unexpectedly`);
    if (shadow) stats.shadowLimit = limit;
    else stats.limit = limit;
    return stats;
  });
}

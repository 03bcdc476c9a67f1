import type { Caller, PublicClient } from '../domain/caller.ts';
import { ownCopy } from '../domain/field-name.ts';
import { type Limits, startOfMonths } from '../domain/limits/limits.ts';
import { isCharged, type LimitRow, windowedRows } from '../domain/limits/rows.ts';
import { scopeNamed } from '../domain/limits/scopes.ts';
import type { Access } from '../domain/operation.ts';
import type { PayerBuckets } from '../stages/buckets/buckets.ts';
import { monthsOfPrincipal } from '../stages/buckets/plans.ts';
import { type Operation, payingAccess } from '../stages/request-context.ts';
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

/** The limits whose requests a log shows: it has neither what runs at the same time nor which principals are ServiceAccounts. */
export function replayedRows(rows: readonly LimitRow[]): readonly LimitRow[] {
  return windowedRows(rows).filter(({ scope }) => scope !== 'service');
}

/** All payers of a log and the statistics of their buckets. */
export class PayerBook {
  readonly stats: BucketStats[] = [];
  /** Those that were paid for. */
  readonly operations = new Set<Operation>();
  readonly #limits: Limits;
  readonly #hasSeries: boolean;
  readonly #isPerPrincipal: boolean;
  readonly #byKey = new Map<string, BucketStats>();
  /** The first hash tag of each Person, where the gateway counts it: its own Account's, which a log does not name. */
  readonly #tagsOfPersons = new Map<string, string>();
  /** The first Account of each principal. A log does not name its own. */
  readonly #homes = new Map<string, { readonly account: string; readonly isGuess: true }>();
  readonly #payers: Readonly<
    Record<
      Access,
      Map<
        string,
        {
          readonly caller: Caller | PublicClient;
          readonly byOperation: Map<Operation, MeasuredPayer>;
          /** Of requests that are charged to some limits alone, by their names. */
          readonly bySome: Map<string, Map<Operation, MeasuredPayer>>;
        }
      >
    >
  > = {
    caller: new Map(),
    person: new Map(),
    public: new Map(),
  };

  /** @param hasSeries whether each bucket is also recorded over time, for charts */
  constructor(limits: Limits, hasSeries: boolean) {
    this.#limits = limits;
    this.#hasSeries = hasSeries;
    this.#isPerPrincipal = limits.rows.some(
      ({ scope, isContract }) => !isContract && scopeNamed(scope).isPerPrincipal,
    );
  }

  payerOf(entry: LogEntry): MeasuredPayer {
    const { operation } = entry;
    const access = payingAccess(operation);
    const map = this.#payers[access];
    const id = this.#idOf(entry);
    let payers = map.get(id);
    if (payers === undefined || hasMoved(payers.caller, entry)) {
      const own = withOwnIds(entry);
      payers = { caller: this.#callerOf(own), byOperation: new Map(), bySome: new Map() };
      map.set(this.#idOf(own), payers);
    }
    const { onlyLimits } = entry;
    const byOperation = onlyLimits === undefined ? payers.byOperation : someOf(payers.bySome, onlyLimits);
    let payer = byOperation.get(operation);
    if (payer === undefined) {
      payer = this.#createPayer(payers.caller, operation, onlyLimits);
      byOperation.set(operation, payer);
    }
    return payer;
  }

  #idOf(entry: LogEntry): string {
    const { account, principal, operation } = entry;
    const isOfBoth = operation.isForBoth === true || (operation.access === 'caller' && this.#isPerPrincipal);
    return isOfBoth ? `${account}\n${principal}` : payingId(entry);
  }

  #createPayer(
    caller: Caller | PublicClient,
    operation: Operation,
    onlyLimits: LogEntry['onlyLimits'],
  ): MeasuredPayer {
    this.operations.add(operation);
    const buckets = this.#limits.rows.flatMap((row) => {
      const isMeant = isCharged(row, operation) && onlyLimits?.includes(row.name) !== false;
      const owner = isMeant ? scopeNamed(row.scope).ownerOf(caller) : undefined;
      return owner === undefined ? [] : [this.#statsOf(row, owner, caller)];
    });
    return { caller, operation, buckets, due: undefined, measured: [] };
  }

  #statsOf(row: LimitRow, owner: string, caller: Caller | PublicClient): BucketStats {
    const key = `${row.name}\n${owner}`;
    let stats = this.#byKey.get(key);
    if (stats === undefined) {
      stats = new BucketStats(this.#ownRow(row, owner, caller), owner, this.#hasSeries);
      this.#byKey.set(key, stats);
      this.stats.push(stats);
    }
    return stats;
  }

  /** The row with the day on which the owner's months begin. */
  #ownRow(row: LimitRow, owner: string, caller: Caller | PublicClient): LimitRow {
    if (row.period?.unit !== 'month') return row;
    const { overrides } = scopeNamed(row.scope);
    const months = overrides === 'principals' ? monthsOfPrincipal(caller) : caller;
    const startsOn = startOfMonths(this.#limits, overrides, owner, months);
    return startsOn === undefined ? row : { ...row, period: { ...row.period, startsOn } };
  }

  #callerOf(entry: LogEntry): Caller | PublicClient {
    const { operation, principal, account, organization, plan } = entry;
    const access = payingAccess(operation);
    if (access === 'public') return { address: payingId(entry), hashTag: payingId(entry) };
    const hashTag = organization ?? account;
    return {
      principal: {
        type: 'Person',
        id: principal,
        account,
        actsFor: NOBODY,
        home: this.#homeOf(principal, account),
      },
      account,
      organization,
      hasOrganizationLimit: organization !== undefined && entry.hasOrganizationLimit !== false,
      plan,
      hashTag: access === 'person' ? this.#tagOfPerson(principal, hashTag) : hashTag,
    };
  }

  /** One for each principal, because its months do not depend on the Account that it acts for. */
  #homeOf(id: string, account: string) {
    const known = this.#homes.get(id) ?? { account, isGuess: true };
    this.#homes.set(id, known);
    return known;
  }

  /** One for each Person, because its own bucket does not depend on the Account that it acts for. */
  #tagOfPerson(id: string, hashTag: string): string {
    const known = this.#tagsOfPersons.get(id);
    if (known === undefined) this.#tagsOfPersons.set(id, hashTag);
    return known ?? hashTag;
  }
}

/** An id that was cut from a chunk of the log would keep the whole chunk. */
function withOwnIds(entry: LogEntry): LogEntry {
  const { account, organization, principal, address } = entry;
  return {
    ...entry,
    account: ownCopy(account),
    organization: organization && ownCopy(organization),
    principal: ownCopy(principal),
    address: address && ownCopy(address),
  };
}

/** Whether an Account has another Organization or plan than before. Its requests are then charged accordingly. */
function hasMoved(
  caller: Caller | PublicClient,
  { organization, plan, hasOrganizationLimit = true }: LogEntry,
): boolean {
  if (caller.organization !== organization || caller.plan !== plan) return true;
  return organization !== undefined && caller.hasOrganizationLimit !== hasOrganizationLimit;
}

function someOf<T>(bySome: Map<string, Map<Operation, T>>, names: readonly string[]): Map<Operation, T> {
  const key = names.join();
  const known = bySome.get(key) ?? new Map<Operation, T>();
  bySome.set(key, known);
  return known;
}

function payingId({ operation, account, principal, address = '' }: LogEntry): string {
  return { caller: account, person: principal, public: address }[operation.access];
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
    stats.hasHadLimit = true;
    return stats;
  });
}

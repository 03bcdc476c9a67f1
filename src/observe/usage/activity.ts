import type { Payer } from '../../domain/caller.ts';
import { CONTRACT_SCOPES } from '../../domain/limits/rows.ts';
import { type ScopeName, scopeNamed } from '../../domain/limits/scopes.ts';
import { Generations } from '../../store/generations.ts';
import { accessOf, isAlike, showsOtherPlan, type UsageBatch, type UsageSum } from './batch.ts';
import { addCounts, type Counts, newSum, type Sum } from './counts.ts';
import { type Extract, extractOf } from './extract.ts';
import { Sketch } from './sketch.ts';
import { type SliceKind, type Window, Windows } from './windows.ts';

/** Owners of each scope in a generation. There are two generations. An owner that is always active takes about 6 KB. */
const OWNERS_PER_GENERATION = 2_500;

/** Operations counted by name per owner and period; the others are counted together. */
const MAX_OPERATIONS = 40;
const OTHERS = 'others';

/** Operations of an owner, the others included: two periods may have more. Replicas of 0.3.0 read no more. */
const MOST_OPERATIONS = 50;

/** Accounts of an Organization that are counted exactly within a period; beyond twice as many, those with the least are dropped. */
const ACCOUNTS_OF_ONE = 32;

/** Operations, and the Accounts of an Organization, are counted over this period and the one before it. */
const PERIOD_MS = 300_000;

export interface OperationCounts extends Counts {
  readonly operation: string;
}

/** What one Account, Organization, Person or address did lately. */
export interface Recent {
  /** The sums of the last 10 seconds, minute and ten minutes; the newest slot of each (1, 10 and 10 s) is being filled. */
  readonly windows: Readonly<Record<Window, Counts>>;
  /** Over the last five to ten minutes, most points first. */
  readonly operations: readonly OperationCounts[];
  /** Of an Organization: its Accounts, over the same time. */
  readonly accounts: Extract;
  /** Each ten seconds of the last ten minutes, oldest first; the newest are being filled. */
  readonly series: readonly Counts[];
}

/** One slice of an owner's windows. */
interface CountSlice extends Sum {
  readonly at: number;
}

const openSlice = (at: number): CountSlice => ({ at, ...newSum() });
const COUNT_SLICES: SliceKind<CountSlice> = { second: openSlice, tenSeconds: openSlice, merge: addCounts };

class OwnerActivity {
  /** The first of several payers that are alike and have one plan, so that most requests leave no object behind. */
  payer: Payer;
  readonly #windows = new Windows(COUNT_SLICES);
  #period = 0;
  #operations = new Map<string, Sum>();
  #accounts: Sketch | undefined;
  #earlierAccounts: Sketch | undefined;
  /** Undefined for an owner without requests in the period before. */
  #earlier: ReadonlyMap<string, Counts> | undefined;

  constructor(first: UsageSum) {
    this.payer = first.payer;
    this.add(first);
  }

  add(added: UsageSum): void {
    const isOther = !isAlike(this.payer, added.payer) || showsOtherPlan(added.payer, this.payer);
    if (isOther) this.payer = added.payer;
    addCounts(this.#windows.current(added.secondMs), added);
    this.#turn(added.secondMs);
    addCounts(this.#sumOf(added.operation.id), added);
    for (const sum of added.accounts ?? []) this.#addAccount(sum);
  }

  #addAccount(sum: UsageSum): void {
    if (sum.payer.account === undefined) return;
    this.#accounts ??= new Sketch(ACCOUNTS_OF_ONE);
    this.#accounts.add(sum.payer.account, sum);
  }

  recent(nowMs: number): Recent {
    this.#turn(nowMs);
    const operations = new Map<string, OperationCounts & Sum>();
    for (const [operation, counts] of [...(this.#earlier ?? []), ...this.#operations]) {
      const sum = operations.get(operation) ?? { operation, ...newSum() };
      addCounts(sum, counts);
      operations.set(operation, sum);
    }
    return {
      windows: {
        '10s': this.#sum('10s', nowMs),
        '1m': this.#sum('1m', nowMs),
        '10m': this.#sum('10m', nowMs),
      },
      operations: boundedOperations([...operations.values()]),
      accounts: this.#recentAccounts(),
      series: this.#windows.series(nowMs).map(({ at: _, ...counts }) => counts),
    };
  }

  #recentAccounts(): Extract {
    const sum = new Sketch(Number.POSITIVE_INFINITY);
    for (const sketch of [this.#earlierAccounts, this.#accounts]) if (sketch !== undefined) sum.merge(sketch);
    return extractOf(sum);
  }

  #sum(window: Window, nowMs: number): Counts {
    const { at: _, ...counts } = this.#windows.sum(window, nowMs);
    return counts;
  }

  #sumOf(operation: string): Sum {
    const known = this.#operations.get(operation);
    if (known !== undefined) return known;
    const isFull = this.#operations.size >= MAX_OPERATIONS;
    const sum = (isFull ? this.#operations.get(OTHERS) : undefined) ?? newSum();
    this.#operations.set(isFull ? OTHERS : operation, sum);
    return sum;
  }

  #turn(nowMs: number): void {
    const period = Math.floor(nowMs / PERIOD_MS);
    if (period === this.#period) return;
    this.#earlier = period === this.#period + 1 ? this.#operations : undefined;
    this.#operations = new Map();
    this.#earlierAccounts = period === this.#period + 1 ? this.#accounts : undefined;
    this.#accounts = undefined;
    this.#period = period;
  }
}

/** Most points first. Beyond the bound, those with the least are counted together. */
function boundedOperations(all: readonly OperationCounts[]): readonly OperationCounts[] {
  const ranked = all.toSorted(byPoints);
  if (ranked.length <= MOST_OPERATIONS) return ranked;
  const named = ranked.filter(({ operation }) => operation !== OTHERS).slice(0, MOST_OPERATIONS - 1);
  const isNamed = new Set(named);
  const others = { operation: OTHERS, ...newSum() };
  for (const one of ranked) if (!isNamed.has(one)) addCounts(others, one);
  return [...named, others].sort(byPoints);
}

function byPoints(a: Counts, b: Counts): number {
  return b.points - a.points || b.requests - a.requests;
}

/**
 * An owner with a single sum is that sum. Its windows are made with the second one: of very many owners, most have a single sum before they
 * are dropped.
 */
class Owners {
  readonly #owners = new Generations<UsageSum | OwnerActivity>(OWNERS_PER_GENERATION);

  add(id: string, sum: UsageSum): void {
    const known = this.#owners.renew(id, () => sum);
    if (known instanceof OwnerActivity) known.add(sum);
    else if (known !== sum) this.#unfold(id, known).add(sum);
  }

  /** Undefined for an owner without a request lately. */
  activityOf(id: string): OwnerActivity | undefined {
    const known = this.#owners.get(id);
    return known === undefined || known instanceof OwnerActivity ? known : this.#unfold(id, known);
  }

  payerOf(id: string): Payer | undefined {
    return this.#owners.get(id)?.payer;
  }

  #unfold(id: string, first: UsageSum): OwnerActivity {
    const activity = new OwnerActivity(first);
    this.#owners.set(id, activity);
    return activity;
  }
}

/** What Accounts, Organizations, Persons and addresses did in the last ten minutes at this replica, in bounded memory. */
export class Activity {
  readonly #batch: UsageBatch;
  readonly #owners: Readonly<Partial<Record<ScopeName, Owners>>> = {
    account: new Owners(),
    person: new Owners(),
    address: new Owners(),
    organization: new Owners(),
  };

  constructor(batch: UsageBatch) {
    this.#batch = batch;
    batch.passTo((sum) => this.#add(sum));
  }

  /** Undefined for an owner without a request lately. */
  recentOf(scope: ScopeName, id: string, nowMs: number): Recent | undefined {
    this.#batch.flush();
    return this.#owners[scope]?.activityOf(id)?.recent(nowMs);
  }

  /** A recent payer that was charged to this owner. */
  payerOf(scope: ScopeName, id: string): Payer | undefined {
    this.#batch.flush();
    return this.#owners[scope]?.payerOf(id);
  }

  /** Counts requests for whom they were charged to, or would have been. What was charged to a Person too counts for its Account. */
  #add(sum: UsageSum): void {
    const { payer, operation, accounts } = sum;
    for (const scope of CONTRACT_SCOPES[accessOf(payer, operation)]) {
      if ((scope === 'organization') !== (accounts !== undefined)) continue;
      const owner = scopeNamed(scope).ownerOf(payer);
      if (owner !== undefined) this.#owners[scope]?.add(owner, sum);
    }
  }
}

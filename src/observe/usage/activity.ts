import type { Payer } from '../../domain/caller.ts';
import type { ScopeName } from '../../domain/limits/scopes.ts';
import { isAlike, showsOtherPlan, type UsageBatch, type UsageSum } from './batch.ts';
import { addCounts, type Counts, newSum, type Sum } from './counts.ts';
import { type Extract, extractOf } from './extract.ts';
import type { Owner } from './owners.ts';
import { Sketch } from './sketch.ts';
import { type SliceKind, type Window, Windows } from './windows.ts';

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
const COUNT_SLICES: SliceKind<CountSlice> = {
  second: openSlice,
  sum: openSlice,
  tenSeconds: openSlice,
  merge: addCounts,
};

export class OwnerActivity {
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

/** What Accounts, Organizations, Persons and addresses did in the last ten minutes at this replica, in bounded memory. */
export class Activity {
  readonly #batch: UsageBatch;

  constructor(batch: UsageBatch) {
    this.#batch = batch;
    batch.passTo(add);
  }

  /** Undefined for an owner without a request lately. */
  recentOf(scope: ScopeName, id: string, nowMs: number): Recent | undefined {
    this.#batch.flush();
    const owner = this.#batch.ownerOf(scope, id);
    return owner?.activity === undefined ? undefined : unfolded(owner, owner.activity).recent(nowMs);
  }

  /** A recent payer that was charged to this owner. */
  payerOf(scope: ScopeName, id: string): Payer | undefined {
    this.#batch.flush();
    return this.#batch.ownerOf(scope, id)?.activity?.payer;
  }
}

/** Counts requests for whom they were charged to, or would have been. What was charged to a Person too counts for its Account. */
function add(sum: UsageSum): void {
  const { owner } = sum;
  if (owner.activity === undefined) owner.activity = sum;
  else unfolded(owner, owner.activity).add(sum);
}

/** The windows of an owner are made with its second sum: of very many owners, most have a single sum before they are dropped. */
function unfolded(owner: Owner, known: UsageSum | OwnerActivity): OwnerActivity {
  if (known instanceof OwnerActivity) return known;
  const activity = new OwnerActivity(known);
  owner.activity = activity;
  return activity;
}

import type { Payer } from '../../domain/caller.ts';
import { CONTRACT_SCOPES } from '../../domain/limits/rows.ts';
import { type ScopeName, scopeNamed } from '../../domain/limits/scopes.ts';
import { Generations } from '../../store/generations.ts';
import { accessOf, isAlike, type UsageBatch, type UsageSum } from './batch.ts';
import { addCounts, type Counts, newSum, type Sum } from './counts.ts';
import { type Extract, extractOf } from './extract.ts';
import { Sketch } from './sketch.ts';
import { type SliceKind, type Window, Windows } from './windows.ts';

/** Owners of each scope in a generation. There are two generations. An owner that is always active takes about 6 KB. */
const OWNERS_PER_GENERATION = 2_500;

/** Operations counted by name per owner and period; the others are counted together. */
const MAX_OPERATIONS = 40;
const OTHERS = 'others';

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
  readonly #windows = new Windows(COUNT_SLICES);
  #period = 0;
  #operations = new Map<string, Sum>();
  #accounts: Sketch | undefined;
  #earlierAccounts: Sketch | undefined;
  /** Undefined for an owner without requests in the period before. */
  #earlier: ReadonlyMap<string, Counts> | undefined;
  #payer: Payer | undefined;

  get payer(): Payer | undefined {
    return this.#payer;
  }

  /** Keeps the first of several payers that are alike, so that most requests leave no object behind. */
  remember(payer: Payer): void {
    if (this.#payer === undefined || !isAlike(this.#payer, payer)) this.#payer = payer;
  }

  add(nowMs: number, operation: string, added: Counts): void {
    addCounts(this.#windows.current(nowMs), added);
    this.#turn(nowMs);
    addCounts(this.#sumOf(operation), added);
  }

  /** Counts what an Account spent of its Organization's points, after `add`. */
  addAccount(account: string, added: Counts): void {
    this.#accounts ??= new Sketch(ACCOUNTS_OF_ONE);
    this.#accounts.add(account, added);
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
      operations: [...operations.values()].sort((a, b) => b.points - a.points || b.requests - a.requests),
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

const newOwner = () => new OwnerActivity();

/** What Accounts, Organizations, Persons and addresses did in the last ten minutes at this replica, in bounded memory. */
export class Activity {
  readonly #batch: UsageBatch;
  readonly #owners: Readonly<Partial<Record<ScopeName, Generations<OwnerActivity>>>> = {
    account: new Generations(OWNERS_PER_GENERATION),
    person: new Generations(OWNERS_PER_GENERATION),
    address: new Generations(OWNERS_PER_GENERATION),
    organization: new Generations(OWNERS_PER_GENERATION),
  };

  constructor(batch: UsageBatch) {
    this.#batch = batch;
    batch.passTo((spending) => this.#add(spending));
  }

  /** Undefined for an owner without a request lately. */
  recentOf(scope: ScopeName, id: string, nowMs: number): Recent | undefined {
    this.#batch.flush();
    return this.#owners[scope]?.get(id)?.recent(nowMs);
  }

  /** A recent payer that was charged to this owner. */
  payerOf(scope: ScopeName, id: string): Payer | undefined {
    this.#batch.flush();
    return this.#owners[scope]?.get(id)?.payer;
  }

  /** Counts requests for everybody whose buckets they were charged to, or would have been. */
  #add({ payer, operation, secondMs, ...counts }: UsageSum): void {
    const { id } = operation;
    for (const scope of CONTRACT_SCOPES[accessOf(payer, operation.access)]) {
      const owner = scopeNamed(scope).ownerOf(payer);
      const counted = owner === undefined ? undefined : this.#owners[scope]?.renew(owner, newOwner);
      if (counted === undefined) continue;
      counted.remember(payer);
      counted.add(secondMs, id, counts);
      if (scope === 'organization' && payer.account !== undefined) counted.addAccount(payer.account, counts);
    }
  }
}

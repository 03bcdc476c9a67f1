import { bucketsFor, type ScopeName } from '../../domain/buckets.ts';
import type { Payer } from '../../domain/caller.ts';
import { isAlike, type Spending, type UsageBatch } from './batch.ts';
import { addCounts, type Counts, newSum, type Sum } from './counts.ts';
import { Slots } from './slots.ts';

/** Owners of each scope in a generation, of which there are two; one that is always active takes about 6 KB. */
const OWNERS_PER_GENERATION = 2_500;

/** Operations counted by name per owner and period; the others are counted together. */
const MAX_OPERATIONS = 40;
const OTHERS = 'others';

const SECOND_MS = 1_000;
const TEN_SECONDS_MS = 10_000;
/** Operations are counted over this period and the one before it. */
const PERIOD_MS = 300_000;

export interface OperationCounts extends Counts {
  readonly operation: string;
}

/** What one Account, Organization, Person or address did lately, at this replica. */
export interface Recent {
  /** The sums of the last 10 seconds, minute and ten minutes; the newest slot of each (1, 10 and 10 s) is being filled. */
  readonly windows: Readonly<Record<'10s' | '1m' | '10m', Counts>>;
  /** Over the last five to ten minutes, most points first. */
  readonly operations: readonly OperationCounts[];
}

class Owner {
  readonly #seconds = new Slots(SECOND_MS, 10);
  readonly #tens = new Slots(TEN_SECONDS_MS, 60);
  #period = 0;
  #operations = new Map<string, Sum>();
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
    this.#seconds.add(nowMs, added);
    this.#tens.add(nowMs, added);
    this.#turn(nowMs);
    addCounts(this.#sumOf(operation), added);
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
        '10s': this.#seconds.sum(nowMs),
        '1m': this.#tens.sum(nowMs, 6),
        '10m': this.#tens.sum(nowMs),
      },
      operations: [...operations.values()].sort((a, b) => b.points - a.points || b.requests - a.requests),
    };
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
    this.#period = period;
  }
}

/** The owners of one scope that were active last, in two generations: keeping an order of use costs more per request. */
class Owners {
  #young = new Map<string, Owner>();
  #old = new Map<string, Owner>();

  find(id: string): Owner | undefined {
    return this.#young.get(id) ?? this.#old.get(id);
  }

  /** The owner that a request of this payer is counted for. */
  active(id: string, payer: Payer): Owner {
    const young = this.#young.get(id);
    if (young !== undefined) {
      young.remember(payer);
      return young;
    }
    const owner = this.#old.get(id) ?? new Owner();
    owner.remember(payer);
    if (this.#young.size >= OWNERS_PER_GENERATION) {
      this.#old = this.#young;
      this.#young = new Map();
    }
    this.#young.set(id, owner);
    return owner;
  }
}

/** What Accounts, Organizations, Persons and addresses did in the last ten minutes at this replica, in bounded memory. */
export class Activity {
  readonly #batch: UsageBatch;
  readonly #owners: Readonly<Record<ScopeName, Owners>> = {
    account: new Owners(),
    person: new Owners(),
    address: new Owners(),
    organization: new Owners(),
  };

  constructor(batch: UsageBatch) {
    this.#batch = batch;
    batch.passTo((spending) => this.#add(spending));
  }

  /** Undefined for an owner without a request lately. */
  recentOf(scope: ScopeName, id: string, nowMs: number): Recent | undefined {
    this.#batch.flush();
    return this.#owners[scope].find(id)?.recent(nowMs);
  }

  /** A recent payer that was charged to this owner. */
  payerOf(scope: ScopeName, id: string): Payer | undefined {
    this.#batch.flush();
    return this.#owners[scope].find(id)?.payer;
  }

  /** Counts requests for everybody whose buckets they were charged to, or would have been. */
  #add({ payer, operation, secondMs, ...counts }: Spending): void {
    const { id, kind, access } = operation;
    for (const { scopeName, scope } of bucketsFor(kind, access)) {
      const owner = scope.ownerOf(payer);
      if (owner === undefined) continue;
      this.#owners[scopeName].active(owner, payer).add(secondMs, id, counts);
    }
  }
}

import type { Payer } from '../../domain/caller.ts';
import { CONTRACT_SCOPES } from '../../domain/limits/rows.ts';
import { scopeNamed } from '../../domain/limits/scopes.ts';
import type { Access } from '../../domain/operation.ts';
import type { Operation, RequestContext } from '../../stages/request-context.ts';
import { newSum, type Sum } from './counts.ts';

const SECOND_MS = 1_000;

/** Sums collected before they are passed on without waiting for the next second. */
const MOST_COLLECTED = 2_048;

/** Sums passed on with each request. More than one, so that steady traffic passes on all of them within the next second. */
const PASSED_ON_PER_REQUEST = 2;

/** What the requests of one payer for one operation came to within a second. */
interface SpendingSum extends Sum {
  readonly payer: Payer;
  readonly operation: Operation;
  /** When that second began, on the monotonic clock. */
  readonly secondMs: number;
}

export type UsageSum = Readonly<SpendingSum>;

/**
 * Adds up requests by payer and operation and passes the sums on once a second, because updating every count for every
 * request took more than a twentieth of the CPU time of a forwarded request. The sums of a second are passed on during the
 * next one, a few with each request, so that no request waits for all of them.
 */
export class UsageBatch {
  readonly #receivers: ((sum: UsageSum) => void)[] = [];
  #secondMs = 0;
  /** The sums of the current second, by operation and by the owner of the first bucket. */
  #current = new Map<Operation, Map<string, SpendingSum>>();
  #collected: UsageSum[] = [];
  /** The sums from `#next` on are still to be passed on. */
  #waiting: UsageSum[] = [];
  #next = 0;

  /** Registers a receiver of the sums, which calls `flush` before its counts are read. */
  passTo(receiver: (sum: UsageSum) => void): void {
    this.#receivers.push(receiver);
  }

  /** Adds a finished request, if it was charged to somebody or would have been. */
  requestFinished({ operation, caller, publicClient, charged }: RequestContext, nowMs: number): void {
    const payer = caller ?? publicClient;
    if (operation === undefined || payer === undefined || charged === undefined) return;
    const [scope] = CONTRACT_SCOPES[accessOf(payer, operation.access)];
    const owner = scope && scopeNamed(scope).ownerOf(payer);
    if (owner === undefined) return;
    if (nowMs - this.#secondMs >= SECOND_MS || this.#collected.length >= MOST_COLLECTED) this.#begin(nowMs);
    const spending = this.#spendingOf(owner, payer, operation);
    spending.requests += 1;
    if (charged.outcome === 'admitted') spending.points += operation.cost;
    else if (charged.outcome === 'denied') spending.refused += 1;
    this.#passOn(PASSED_ON_PER_REQUEST);
  }

  /** Passes on everything. */
  flush(): void {
    this.#begin(this.#secondMs);
    this.#passOn();
  }

  #begin(nowMs: number): void {
    this.#passOn();
    this.#waiting = this.#collected;
    this.#next = 0;
    this.#collected = [];
    // Not `clear`, which keeps the old entries in memory (docs/decisions/0011).
    this.#current = new Map();
    this.#secondMs = nowMs - (nowMs % SECOND_MS);
  }

  #spendingOf(owner: string, payer: Payer, operation: Operation): SpendingSum {
    const byOwner = this.#current.get(operation) ?? new Map<string, SpendingSum>();
    const known = byOwner.get(owner);
    if (known !== undefined && isAlike(known.payer, payer)) return known;
    const added = { payer, operation, secondMs: this.#secondMs, ...newSum() };
    this.#current.set(operation, byOwner.set(owner, added));
    this.#collected.push(added);
    return added;
  }

  #passOn(most = Number.POSITIVE_INFINITY): void {
    const end = Math.min(this.#waiting.length, this.#next + most);
    for (; this.#next < end; this.#next++) {
      const spending = this.#waiting[this.#next];
      if (spending !== undefined) for (const receive of this.#receivers) receive(spending);
    }
  }
}

/** An address that is blocked is counted as one, whatever it asks for. */
export function accessOf(payer: Payer, access: Access): Access {
  return payer.address === undefined ? access : 'public';
}

/** Whether two payers that share a bucket share all others as well. */
export function isAlike(a: Payer, b: Payer): boolean {
  return a.hashTag === b.hashTag && a.hasOrganizationLimit === b.hasOrganizationLimit;
}

import { randomInt } from 'node:crypto';
import type { Payer } from '../../domain/caller.ts';
import { CONTRACT_SCOPES } from '../../domain/limits/rows.ts';
import { scopeNamed } from '../../domain/limits/scopes.ts';
import type { Access } from '../../domain/operation.ts';
import { isOwn } from '../../stages/buckets/plans.ts';
import {
  costAtAdmission,
  type Operation,
  payingAccess,
  type RequestContext,
  reasonOf,
  spentBy,
} from '../../stages/request-context.ts';
import { addCounts, type Sum } from './counts.ts';

const SECOND_MS = 1_000;

/** Sums collected before they are passed on without waiting for the next second. */
const MOST_COLLECTED = 2_048;

/** Sums passed on with each request. More than one, so that steady traffic passes on all of them within the next second. */
const PASSED_ON_PER_REQUEST = 2;

/** Requests that are remembered one by one, and charges. All of them take 12 MB; at 1,000 requests a second they reach back two minutes. */
const REMEMBERED = 131_072;

const PLACES_PER_PART = 4_096;

/**
 * A place for each that is remembered. Memory is taken for some thousand places when the first of them is used: a single array would take 1 MB
 * and two milliseconds when a gateway starts, and one that grows is copied each time.
 */
class Places<One> {
  readonly #parts: (One | undefined)[][] = [];

  at(place: number): One | undefined {
    return this.#parts[Math.trunc(place / PLACES_PER_PART)]?.[place % PLACES_PER_PART];
  }

  set(place: number, one: One | undefined): void {
    const part = Math.trunc(place / PLACES_PER_PART);
    this.#parts[part] ??= new Array<One | undefined>(PLACES_PER_PART).fill(undefined);
    this.#parts[part][place % PLACES_PER_PART] = one;
  }
}

/** A request of the last minutes. */
export interface PastRequest {
  /** When it ended, by `performance.now()`. */
  readonly endedMs: number;
  readonly status: number;
  /** The id of its operation; undefined if it was refused before that was known. */
  readonly operation: string | undefined;
  /** The Account, or the address of a client of a public operation, if it was known. */
  readonly account: string | undefined;
  readonly address: string | undefined;
  /** Why it was refused, or not counted, as in the access log. */
  readonly reason: string | undefined;
}

/** The last requests of this process, by digests of their ids: an id would keep the whole head in memory that it is cut from. */
export class LastRequests {
  /** Two for each request. The last place is for the id that is looked for. */
  readonly #digests = new Int32Array(2 * (REMEMBERED + 1));
  /** No stranger knows them, so nobody can make an id that is taken for another one. */
  readonly #seeds = [randomInt(2 ** 32), randomInt(2 ** 32)] as const;
  readonly #endedMs = new Float64Array(REMEMBERED);
  readonly #statuses = new Uint16Array(REMEMBERED);
  readonly #operations = new Places<Operation>();
  /** Rather than payers: most requests have a payer object of their own, which would stay in memory. */
  readonly #accounts = new Places<string>();
  readonly #addresses = new Places<string>();
  readonly #reasons = new Places<string>();
  #count = 0;

  add(request: RequestContext, status: number, nowMs: number): void {
    const place = this.#count % REMEMBERED;
    this.#count += 1;
    this.#digest(request.requestId, place);
    this.#endedMs[place] = nowMs;
    this.#statuses[place] = status;
    this.#operations.set(place, request.operation);
    this.#accounts.set(place, request.caller?.account);
    this.#addresses.set(place, request.publicClient?.address);
    this.#reasons.set(place, reasonOf(request));
  }

  /** The requests with this id, the last one first: clients may use an id twice. */
  find(requestId: string, most: number): readonly PastRequest[] {
    this.#digest(requestId, REMEMBERED);
    const found: PastRequest[] = [];
    const oldest = Math.max(0, this.#count - REMEMBERED);
    for (let number = this.#count - 1; number >= oldest && found.length < most; number--) {
      const place = number % REMEMBERED;
      if (this.#isAlike(place, REMEMBERED)) found.push(this.#at(place));
    }
    return found;
  }

  /** FNV-1a, and the same with another factor. An id has at most 128 characters. */
  #digest(requestId: string, place: number): void {
    let [first, second] = this.#seeds;
    for (let index = 0; index < requestId.length; index++) {
      const code = requestId.charCodeAt(index);
      first = Math.imul(first ^ code, 0x01000193);
      second = Math.imul(second ^ code, 0x85ebca6b);
    }
    this.#digests[2 * place] = first;
    this.#digests[2 * place + 1] = second;
  }

  #isAlike(place: number, other: number): boolean {
    const digests = this.#digests;
    return digests[2 * place] === digests[2 * other] && digests[2 * place + 1] === digests[2 * other + 1];
  }

  #at(place: number): PastRequest {
    return {
      endedMs: this.#endedMs[place] ?? 0,
      status: this.#statuses[place] ?? 0,
      operation: this.#operations.at(place)?.id,
      account: this.#accounts.at(place),
      address: this.#addresses.at(place),
      reason: this.#reasons.at(place),
    };
  }
}

/** A charge that a request has made. */
export interface PastCharge {
  /** Its principal may be another one. */
  readonly payer: Payer;
  readonly principal: Payer['principal'];
  readonly operation: Operation;
  /** The only limits that were charged; undefined for all. */
  readonly limits: readonly string[] | undefined;
  /** When the store was asked and when the request ended, by `performance.now()`. */
  readonly askedMs: number;
  readonly endedMs: number;
  /** Points, and what they came to in the end. */
  readonly charged: number;
  readonly final: number;
  /** Whether limits that count requests do not count it either. */
  readonly isRefunded: boolean;
}

/** The final points of a charge that is refunded. All others are at most 2,000,000,000, so that they have room beside it in 32 bits. */
const REFUNDED = -1;

/** The last charges of this process, in memory that is used again and again. */
class LastCharges {
  readonly #askedMs = new Float64Array(REMEMBERED);
  readonly #endedMs = new Float64Array(REMEMBERED);
  readonly #charged = new Uint32Array(REMEMBERED);
  readonly #final = new Int32Array(REMEMBERED);
  readonly #sums = new Places<SpendingSum>();
  readonly #principals = new Places<NonNullable<Payer['principal']>>();
  /** By place; of few charges. */
  readonly #limits = new Map<number, readonly string[]>();
  #count = 0;

  add(sum: SpendingSum, request: RequestContext, nowMs: number): void {
    const { source, settledCost, isRefunded, chargeAskedMs = nowMs } = request;
    const place = this.#count % REMEMBERED;
    this.#count += 1;
    this.#askedMs[place] = chargeAskedMs;
    this.#endedMs[place] = nowMs;
    this.#charged[place] = costAtAdmission(request);
    this.#final[place] = isRefunded ? REFUNDED : (settledCost ?? costAtAdmission(request));
    this.#sums.set(place, sum);
    this.#principals.set(place, (request.caller ?? request.publicClient)?.principal);
    if (source.askedLimits !== undefined) this.#limits.set(place, source.askedLimits);
    else if (this.#limits.size > 0) this.#limits.delete(place);
  }

  /** Since when every charge is remembered, by `performance.now()`. */
  get sinceMs(): number {
    return this.#count <= REMEMBERED ? 0 : (this.#endedMs[this.#count % REMEMBERED] ?? 0);
  }

  /** How many charges there were in all: the number of the next one. */
  get count(): number {
    return this.#count;
  }

  /** The number of the oldest charge that is remembered. */
  get oldest(): number {
    return Math.max(0, this.#count - REMEMBERED);
  }

  /** When the request of a remembered charge ended. */
  endedMsOf(number: number): number {
    return this.#endedMs[number % REMEMBERED] ?? 0;
  }

  /** Whom a remembered charge was charged to. Its principal may be another one. */
  payerOf(number: number): Payer | undefined {
    return this.#sums.at(number % REMEMBERED)?.payer;
  }

  principalOf(number: number): Payer['principal'] {
    return this.#principals.at(number % REMEMBERED);
  }

  /** The charges that were in progress at this time, by `performance.now()`, and have ended since. */
  *inProgressAt(atMs: number): Iterable<PastCharge> {
    for (let number = this.#count - 1; number >= this.oldest && this.endedMsOf(number) >= atMs; number--) {
      if ((this.#askedMs[number % REMEMBERED] ?? 0) > atMs) continue;
      const charge = this.at(number);
      if (charge !== undefined) yield charge;
    }
  }

  /** The charge with this number; undefined if it is not remembered. */
  at(number: number): PastCharge | undefined {
    const place = number % REMEMBERED;
    const sum = this.#sums.at(place);
    if (sum === undefined || number < this.#count - REMEMBERED || number >= this.#count) return undefined;
    const final = this.#final[place] ?? 0;
    return {
      payer: sum.payer,
      principal: this.#principals.at(place),
      operation: sum.operation,
      limits: this.#limits.size === 0 ? undefined : this.#limits.get(place),
      askedMs: this.#askedMs[place] ?? 0,
      endedMs: this.#endedMs[place] ?? 0,
      charged: this.#charged[place] ?? 0,
      final: Math.max(0, final),
      isRefunded: final === REFUNDED,
    };
  }
}

/** What the requests of one payer, or of the Accounts of one Organization, for one operation came to within a second. */
interface SpendingSum extends Sum {
  /** The first of its payers, or a later one with another plan. */
  payer: Payer;
  readonly operation: Operation;
  /** When that second began, on the monotonic clock. */
  readonly secondMs: number;
  /** Of an Organization: the sums of its Accounts. */
  readonly accounts: UsageSum[] | undefined;
}

export type UsageSum = Readonly<SpendingSum>;

/**
 * Adds up requests by payer and operation and passes the sums on once a second, because updating every count for every
 * request took more than a twentieth of the CPU time of a forwarded request. The sums of a second are passed on during the
 * next one, a few with each request, so that no request waits for all of them.
 */
export class UsageBatch {
  /** The charges of the last seconds or minutes. */
  readonly charges = new LastCharges();
  readonly #receivers: ((sum: UsageSum) => void)[] = [];
  #secondMs = 0;
  /** The sums of the current second, by operation and by the owner of the first bucket. */
  #current = new Map<Operation, Map<string, SpendingSum>>();
  #collected: UsageSum[] = [];
  /** The sums from `#next` on are still to be passed on. */
  #waiting: UsageSum[] = [];
  #next = 0;
  /** The newest sum of each Organization in `#waiting`. */
  #byOrganization = new Map<string, SpendingSum>();

  /**
   * Registers a receiver of the sums. An Organization's sum comes after the sums of its Accounts. The receiver calls `flush`
   * before its counts are read.
   */
  passTo(receiver: (sum: UsageSum) => void): void {
    this.#receivers.push(receiver);
  }

  /** Adds a finished request, if it was charged to somebody or would have been. */
  requestFinished(request: RequestContext, nowMs: number): void {
    const { operation, caller, publicClient, charged } = request;
    const payer = caller ?? publicClient;
    if (operation === undefined || payer === undefined || charged === undefined) return;
    const spending = this.#spendingAt(payer, operation, nowMs);
    if (spending === undefined) return;
    spending.requests += 1;
    if (charged.outcome === 'admitted') {
      spending.points += spentBy(request);
      if (request.source.isPeek !== true) this.charges.add(spending, request, nowMs);
    } else if (charged.outcome === 'denied') spending.refused += 1;
    this.#passOn(PASSED_ON_PER_REQUEST);
  }

  /** Adds what a request has cost that was added before, without its points. */
  pointsSpent(payer: Payer, operation: Operation, points: number, nowMs: number): void {
    const spending = this.#spendingAt(payer, operation, nowMs);
    if (spending === undefined) return;
    spending.points += points;
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
    this.#byOrganization = new Map();
    this.#collected = [];
    // Not `clear`, which keeps the old entries in memory (docs/decisions/0011).
    this.#current = new Map();
    this.#secondMs = nowMs - (nowMs % SECOND_MS);
  }

  /** Undefined if the operation is charged to nobody. */
  #spendingAt(payer: Payer, operation: Operation, nowMs: number): SpendingSum | undefined {
    const [scope] = CONTRACT_SCOPES[accessOf(payer, operation)];
    const owner = scope && scopeNamed(scope).ownerOf(payer);
    if (owner === undefined) return undefined;
    if (nowMs - this.#secondMs >= SECOND_MS || this.#collected.length >= MOST_COLLECTED) this.#begin(nowMs);
    return this.#spendingOf(owner, payer, operation);
  }

  #spendingOf(owner: string, payer: Payer, operation: Operation): SpendingSum {
    let byOwner = this.#current.get(operation);
    if (byOwner === undefined) {
      byOwner = new Map<string, SpendingSum>();
      this.#current.set(operation, byOwner);
    }
    const known = byOwner.get(owner);
    if (known !== undefined && isAlike(known.payer, payer)) {
      if (showsOtherPlan(payer, known.payer) && known.payer.account === payer.account) known.payer = payer;
      return known;
    }
    const added = sumOf(payer, operation, this.#secondMs, undefined);
    byOwner.set(owner, added);
    this.#collected.push(added);
    return added;
  }

  #passOn(most = Number.POSITIVE_INFINITY): void {
    const end = this.#next + most;
    for (; this.#next < end && this.#next < this.#waiting.length; this.#next++) {
      const sum = this.#waiting[this.#next];
      if (sum === undefined) continue;
      for (const receive of this.#receivers) receive(sum);
      if (sum.accounts === undefined) this.#gather(sum);
    }
  }

  /** Adds the sum of an Account to the sum of its Organization, so that its counts change once for many Accounts. It follows all of them. */
  #gather(added: UsageSum): void {
    const { payer, operation, secondMs } = added;
    const { organization } = payer;
    if (payingAccess(operation) !== 'caller' || organization === undefined || !payer.hasOrganizationLimit)
      return;
    let sum = this.#byOrganization.get(organization);
    if (sum === undefined || sum.operation !== operation) {
      sum = sumOf(payer, operation, secondMs, []);
      this.#byOrganization.set(organization, sum);
      this.#waiting.push(sum);
    }
    addCounts(sum, added);
    sum.accounts?.push(added);
  }
}

function sumOf(
  payer: Payer,
  operation: Operation,
  secondMs: number,
  accounts: UsageSum[] | undefined,
): SpendingSum {
  return { payer, operation, secondMs, accounts, points: 0, requests: 0, refused: 0 };
}

/** An address that is blocked is counted as one, whatever it asks for. */
export function accessOf(payer: Payer, operation: Operation): Access {
  return payer.address === undefined ? payingAccess(operation) : 'public';
}

/** Whether two payers that share a bucket share all others as well. */
export function isAlike(a: Payer, b: Payer): boolean {
  return a.hashTag === b.hashTag && a.hasOrganizationLimit === b.hasOrganizationLimit;
}

/**
 * Whether a payer shows that the limits of an owner come from another plan, or its months begin on another day, than one before it.
 * A principal of another Account does not have the plan that the owner's own token names.
 */
export function showsOtherPlan(payer: Payer, before: Payer): boolean {
  if (payer.plan === before.plan && payer.periodStartsOn === before.periodStartsOn) return false;
  return isOwn(payer.principal, payer.account) || !isOwn(before.principal, before.account);
}

import { randomInt } from 'node:crypto';
import type { Payer } from '../../domain/caller.ts';
import { type ScopeName, scopeNamed } from '../../domain/limits/scopes.ts';
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
import type { Sum } from './counts.ts';
import { type Owner, Owners } from './owners.ts';

const SECOND_MS = 1_000;

/** Sums collected before they are passed on without waiting for the next second. */
const MOST_COLLECTED = 2_048;

/** Sums passed on with each request. More than one, so that steady traffic passes on all of them within the next second. */
const PASSED_ON_PER_REQUEST = 2;

/** Requests that are remembered one by one, and charges. All of them take 13 MB; at 1,000 requests a second they reach back two minutes. */
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
  readonly #payers = new Places<Payer>();
  readonly #operations = new Places<Operation>();
  readonly #principals = new Places<NonNullable<Payer['principal']>>();
  /** By place; of few charges. */
  readonly #limits = new Map<number, readonly string[]>();
  #count = 0;

  /** @param payer one that is like the request's own, so that most requests leave no object behind */
  add(payer: Payer, operation: Operation, request: RequestContext, nowMs: number): void {
    const { source, settledCost, isRefunded, chargeAskedMs = nowMs } = request;
    const place = this.#count % REMEMBERED;
    this.#count += 1;
    this.#askedMs[place] = chargeAskedMs;
    this.#endedMs[place] = nowMs;
    this.#charged[place] = costAtAdmission(request);
    this.#final[place] = isRefunded ? REFUNDED : (settledCost ?? costAtAdmission(request));
    this.#payers.set(place, payer);
    this.#operations.set(place, operation);
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
    return this.#payers.at(number % REMEMBERED);
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
    const payer = this.#payers.at(place);
    const operation = this.#operations.at(place);
    if (payer === undefined || operation === undefined) return undefined;
    if (number < this.#count - REMEMBERED || number >= this.#count) return undefined;
    const final = this.#final[place] ?? 0;
    return {
      payer,
      principal: this.#principals.at(place),
      operation,
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
export interface SpendingSum extends Sum {
  /** The Account, Person or address, or the Organization. */
  readonly owner: Owner;
  /** The first of its payers, or a later one with another plan. */
  payer: Payer;
  readonly operation: Operation;
  /** When that second began, on the monotonic clock. */
  readonly secondMs: number;
  /** The number of the batch that it is passed on with. */
  readonly batch: number;
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
  readonly #owners = {
    account: new Owners(),
    person: new Owners(),
    address: new Owners(),
    organization: new Owners(),
  };
  /** By access: the scope that is charged first. */
  readonly #first = {
    caller: { owners: this.#owners.account, ownerOf: scopeNamed('account').ownerOf },
    person: { owners: this.#owners.person, ownerOf: scopeNamed('person').ownerOf },
    public: { owners: this.#owners.address, ownerOf: scopeNamed('address').ownerOf },
  };
  #secondMs = 0;
  /** The sums of the current second. */
  #collected: UsageSum[] = [];
  #batch = 1;
  /** The sums from `#next` on are still to be passed on. */
  #waiting: UsageSum[] = [];
  #next = 0;
  /** The Organizations in `#waiting`. */
  #organizations = new Map<string, Owner>();

  /**
   * Registers a receiver of the sums. An Organization's sum comes after the sums of its Accounts. The receiver calls `flush`
   * before its counts are read. There is one `Activity` and one `Talkers` at most, because they keep what they count with the owners.
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
      if (request.source.isPeek !== true) this.charges.add(spending.payer, operation, request, nowMs);
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

  /** Undefined for an owner without a request lately. */
  ownerOf(scope: ScopeName, id: string): Owner | undefined {
    const owners: Readonly<Partial<Record<ScopeName, Owners>>> = this.#owners;
    return owners[scope]?.get(id);
  }

  #begin(nowMs: number): void {
    this.#passOn();
    this.#waiting = this.#collected;
    this.#next = 0;
    this.#collected = [];
    this.#organizations = new Map();
    this.#batch += 1;
    this.#secondMs = nowMs - (nowMs % SECOND_MS);
  }

  /** Undefined if the operation is charged to nobody. */
  #spendingAt(payer: Payer, operation: Operation, nowMs: number): SpendingSum | undefined {
    const { owners, ownerOf } = this.#first[accessOf(payer, operation)];
    const id = ownerOf(payer);
    if (id === undefined) return undefined;
    const owner = owners.renew(id);
    if (nowMs - this.#secondMs >= SECOND_MS || this.#collected.length >= MOST_COLLECTED) this.#begin(nowMs);
    const known = owner.sumIn(this.#batch, operation);
    if (known !== undefined && isAlike(known.payer, payer)) {
      if (showsOtherPlan(payer, known.payer) && known.payer.account === payer.account) known.payer = payer;
      return known;
    }
    const added = sumOf(owner, payer, operation, this.#secondMs, this.#batch, undefined);
    this.#collected.push(added);
    return added;
  }

  #passOn(most = Number.POSITIVE_INFINITY): void {
    const end = this.#next + most;
    for (; this.#next < end && this.#next < this.#waiting.length; this.#next++) {
      const sum = this.#waiting[this.#next];
      if (sum === undefined) continue;
      for (const receive of this.#receivers) receive(sum);
      sum.owner.passedOn();
      if (sum.accounts === undefined) this.#gather(sum);
    }
  }

  /** Adds the sum of an Account to the sum of its Organization, so that its counts change once for many Accounts. It follows all of them. */
  #gather(added: UsageSum): void {
    const { payer, operation, secondMs } = added;
    const { organization } = payer;
    if (payingAccess(operation) !== 'caller' || organization === undefined || !payer.hasOrganizationLimit)
      return;
    let owner = this.#organizations.get(organization);
    if (owner === undefined) {
      owner = this.#owners.organization.renew(organization);
      this.#organizations.set(organization, owner);
    }
    let sum = owner.sumIn(added.batch, operation);
    if (sum === undefined) {
      sum = sumOf(owner, payer, operation, secondMs, added.batch, []);
      this.#waiting.push(sum);
    }
    // Not by `addCounts`: see open-sketch.ts.
    sum.points += added.points;
    sum.requests += added.requests;
    sum.refused += added.refused;
    sum.accounts?.push(added);
  }
}

function sumOf(
  owner: Owner,
  payer: Payer,
  operation: Operation,
  secondMs: number,
  batch: number,
  accounts: UsageSum[] | undefined,
): SpendingSum {
  const sum = { owner, payer, operation, secondMs, batch, accounts, points: 0, requests: 0, refused: 0 };
  owner.begin(sum);
  return sum;
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

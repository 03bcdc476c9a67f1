import type { ScopeName } from '../../domain/buckets.ts';
import type { RequestContext } from '../../gateway/request-context.ts';

/** A request that the gateway refused after it had found out who pays. */
export interface RefusedRequest {
  /** Unix time in milliseconds. */
  readonly atMs: number;
  readonly account: string;
  readonly organization: string | null;
  readonly principal: string;
  readonly operation: string;
  readonly status: number;
  /** The code of the problem body, such as RateLimitExceeded. */
  readonly reason: string;
  readonly detail: string;
  readonly cost: number;
  /** The bucket that refused; null unless the reason is RateLimitExceeded. */
  readonly bucket: string | null;
  /** Seconds until the cost fits; null likewise. */
  readonly retryAfterSeconds: number | null;
  readonly requestId: string;
}

/** Whose refusals are asked for. Those of public operations are not kept: nobody's Account was charged. */
export interface RefusedOwner {
  readonly scope: ScopeName;
  readonly id: string;
}

/** Accounts whose refusals are kept, and how many of each: in all about a megabyte. */
const MAX_ACCOUNTS = 250;
const PER_ACCOUNT = 8;

/** How many refusals a replica publishes, and how many of one Account: one that is refused all the time hides no other. */
const PUBLISHED = 40;
const PUBLISHED_PER_ACCOUNT = 4;

/** The last refusals of the Accounts that were refused last, at this replica, in bounded memory. */
export class Refusals {
  /** Newest last; the Account that was refused last is last as well. */
  readonly #byAccount = new Map<string, RefusedRequest[]>();

  /** Remembers a finished request if it was refused. */
  requestFinished(context: RequestContext, atMs: number): void {
    const { refusal, caller, operation, charged, requestId } = context;
    if (refusal === undefined || caller === undefined || operation === undefined) return;
    const { account, organization = null, principal } = caller;
    const ofAccount = this.#byAccount.get(account) ?? [];
    this.#byAccount.delete(account);
    this.#byAccount.set(account, ofAccount);
    ofAccount.push({
      atMs,
      account,
      organization,
      principal: principal.id,
      operation: operation.id,
      status: refusal.status,
      reason: refusal.code,
      detail: refusal.detail,
      cost: operation.cost,
      bucket: charged?.outcome === 'denied' ? charged.bucket : null,
      retryAfterSeconds: Number(refusal.headers?.['Retry-After'] ?? Number.NaN) || null,
      requestId,
    });
    if (ofAccount.length > PER_ACCOUNT) ofAccount.shift();
    if (this.#byAccount.size > MAX_ACCOUNTS) this.#dropOldest();
  }

  /** The most recent ones of all Accounts, newest first, for other replicas. */
  latest(): readonly RefusedRequest[] {
    const accounts = [...this.#byAccount.values()].slice(-PUBLISHED);
    return newestFirst(accounts.flatMap((one) => one.slice(-PUBLISHED_PER_ACCOUNT))).slice(0, PUBLISHED);
  }

  /** Those of one owner, newest first. */
  of(owner: RefusedOwner): readonly RefusedRequest[] {
    const all =
      owner.scope === 'account'
        ? (this.#byAccount.get(owner.id) ?? [])
        : [...this.#byAccount.values()].flat().filter((one) => isOf(one, owner));
    return newestFirst(all);
  }

  #dropOldest(): void {
    const [oldest] = this.#byAccount.keys();
    if (oldest !== undefined) this.#byAccount.delete(oldest);
  }
}

export function isOf(
  { account, organization, principal }: RefusedRequest,
  { scope, id }: RefusedOwner,
): boolean {
  return { account, organization, person: principal, address: undefined }[scope] === id;
}

export function newestFirst(refusals: readonly RefusedRequest[]): readonly RefusedRequest[] {
  return refusals.toSorted((a, b) => b.atMs - a.atMs);
}

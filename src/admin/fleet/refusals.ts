import type { ScopeName } from '../../domain/buckets.ts';
import type { RequestContext } from '../../gateway/request-context.ts';

/** A request that the gateway refused after it had found out who pays. */
export interface RefusedRequest {
  /** Unix time in milliseconds. */
  readonly atMs: number;
  /** Null for a public operation, as are the next two. */
  readonly account: string | null;
  readonly organization: string | null;
  readonly principal: string | null;
  /** The client of a public operation; null for any other. */
  readonly address: string | null;
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

/** Whose refusals are asked for. */
export interface RefusedOwner {
  readonly scope: ScopeName;
  readonly id: string;
}

/** Accounts and addresses whose refusals are kept, and how many of each: in all about a megabyte. */
const MAX_PAYERS = 250;
const PER_PAYER = 8;

/** The shortest time between two remembered refusals of one payer for the same reason: in a flood, remembering all of them costs CPU. */
const SAME_REASON_MS = 100;

/** How many refusals a replica publishes, and how many of one Account: one that is refused all the time hides no other. */
const PUBLISHED = 40;
const PUBLISHED_PER_PAYER = 4;

/** The last refusals of the Accounts and addresses that were refused last, at this replica, in bounded memory. */
export class Refusals {
  /** Newest last; the one that was refused last is last as well. */
  readonly #byPayer = new Map<string, RefusedRequest[]>();

  /** Remembers a finished request if it was refused. */
  requestFinished(context: RequestContext, atMs: number): void {
    const { refusal, operation, charged, requestId } = context;
    const payer = context.caller ?? context.publicClient;
    if (refusal === undefined || payer === undefined || operation === undefined) return;
    const { account = null, organization = null, principal, address = null } = payer;
    // No Account id contains a line break.
    const key = account ?? `address\n${address}`;
    const ofPayer = this.#byPayer.get(key) ?? [];
    if (isRepeated(ofPayer.at(-1), refusal.detail, operation.id, atMs)) return;
    this.#byPayer.delete(key);
    this.#byPayer.set(key, ofPayer);
    ofPayer.push({
      atMs,
      account,
      organization,
      principal: principal?.id ?? null,
      address,
      operation: operation.id,
      status: refusal.status,
      reason: refusal.code,
      detail: refusal.detail,
      cost: operation.cost,
      bucket: charged?.outcome === 'denied' ? charged.bucket : null,
      retryAfterSeconds: Number(refusal.headers?.['Retry-After'] ?? Number.NaN) || null,
      requestId,
    });
    if (ofPayer.length > PER_PAYER) ofPayer.shift();
    if (this.#byPayer.size > MAX_PAYERS) this.#dropOldest();
  }

  /** The most recent ones of all Accounts, newest first, for other replicas. */
  latest(): readonly RefusedRequest[] {
    const payers = [...this.#byPayer.values()].slice(-PUBLISHED);
    return newestFirst(payers.flatMap((one) => one.slice(-PUBLISHED_PER_PAYER))).slice(0, PUBLISHED);
  }

  /** Those of one owner, newest first. */
  of(owner: RefusedOwner): readonly RefusedRequest[] {
    const all = [...this.#byPayer.values()].flat();
    return newestFirst(all.filter((one) => isOf(one, owner)));
  }

  #dropOldest(): void {
    const [oldest] = this.#byPayer.keys();
    if (oldest !== undefined) this.#byPayer.delete(oldest);
  }
}

function isRepeated(
  newest: RefusedRequest | undefined,
  detail: string,
  operation: string,
  atMs: number,
): boolean {
  if (newest === undefined || atMs - newest.atMs >= SAME_REASON_MS) return false;
  return newest.detail === detail && newest.operation === operation;
}

export function isOf(
  { account, organization, principal, address }: RefusedRequest,
  { scope, id }: RefusedOwner,
): boolean {
  return { account, organization, person: principal, address }[scope] === id;
}

export function newestFirst(refusals: readonly RefusedRequest[]): readonly RefusedRequest[] {
  return refusals.toSorted((a, b) => b.atMs - a.atMs);
}

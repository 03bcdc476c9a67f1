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

/** Accounts whose refusals are kept, addresses likewise, and how many of each: in all about a megabyte. */
const MAX_ACCOUNTS = 250;
const MAX_ADDRESSES = 50;
const PER_PAYER = 8;

/** The shortest time between two remembered refusals of one payer for the same reason: in a flood, remembering all of them costs CPU. */
const SAME_REASON_MS = 100;

/** How many refusals a replica publishes, and how many of one Account: one that is refused all the time hides no other. */
const PUBLISHED = 40;
const PUBLISHED_PER_PAYER = 4;

/** The share of a list that addresses may have, because anybody can be refused from many. */
const ADDRESS_SHARE = 0.25;

/** The last refusals of the Accounts and of the addresses that were refused last, at this replica, in bounded memory. */
export class Refusals {
  readonly #byAccount = new RefusalsByPayer(MAX_ACCOUNTS);
  readonly #byAddress = new RefusalsByPayer(MAX_ADDRESSES);

  /** Remembers a finished request if it was refused. */
  requestFinished(context: RequestContext, atMs: number): void {
    const { refusal, operation, charged, requestId } = context;
    const payer = context.caller ?? context.publicClient;
    if (refusal === undefined || payer === undefined || operation === undefined) return;
    const { account = null, organization = null, principal, address = null } = payer;
    const id = account ?? address;
    if (id === null) return;
    const payers = account === null ? this.#byAddress : this.#byAccount;
    if (isRepeated(payers.lastOf(id), refusal.detail, operation.id, atMs)) return;
    payers.add(id, {
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
  }

  /** The most recent ones of all payers, newest first, for other replicas. */
  latest(): readonly RefusedRequest[] {
    const payers = [...this.#byAccount.latest(PUBLISHED), ...this.#byAddress.latest(PUBLISHED)];
    return mostRecent(
      payers.flatMap((one) => one.slice(-PUBLISHED_PER_PAYER)),
      PUBLISHED,
    );
  }

  /** Those of one owner, newest first. */
  of(owner: RefusedOwner): readonly RefusedRequest[] {
    const all = [...this.#byAccount.latest(), ...this.#byAddress.latest()].flat();
    return newestFirst(all.filter((one) => isOf(one, owner)));
  }
}

/** The refusals of the payers of one kind that were refused last. */
class RefusalsByPayer {
  readonly #maxPayers: number;
  /** Newest last; the payer that was refused last is last as well. */
  readonly #lists = new Map<string, RefusedRequest[]>();

  constructor(maxPayers: number) {
    this.#maxPayers = maxPayers;
  }

  lastOf(id: string): RefusedRequest | undefined {
    return this.#lists.get(id)?.at(-1);
  }

  add(id: string, refused: RefusedRequest): void {
    const list = this.#lists.get(id) ?? [];
    this.#lists.delete(id);
    this.#lists.set(id, list);
    list.push(refused);
    if (list.length > PER_PAYER) list.shift();
    const [oldest] = this.#lists.keys();
    if (this.#lists.size > this.#maxPayers && oldest !== undefined) this.#lists.delete(oldest);
  }

  /** The lists of the payers that were refused last, up to `count` of them. */
  latest(count = this.#maxPayers): readonly (readonly RefusedRequest[])[] {
    return [...this.#lists.values()].slice(-count);
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

/** At most `count` refusals, newest first, a quarter of them of addresses at most. */
export function mostRecent(refusals: readonly RefusedRequest[], count: number): readonly RefusedRequest[] {
  const all = newestFirst(refusals);
  const ofAddresses = all.filter(({ address }) => address !== null).slice(0, count * ADDRESS_SHARE);
  const ofAccounts = all.filter(({ address }) => address === null).slice(0, count - ofAddresses.length);
  return newestFirst([...ofAccounts, ...ofAddresses]);
}

import { type Static, Type } from 'typebox';
import { ownCopy } from '../../domain/field-name.ts';
import type { ScopeName } from '../../domain/limits/scopes.ts';
import { amount, matching, plainText, timeMs } from '../../facts/message-bounds.ts';
import { costAtAdmission, type RequestContext } from '../../stages/request-context.ts';

const owner = Type.Union([plainText(256), Type.Null()]);

/** A request that the gateway refused after it had found out who pays. Other replicas publish it within these bounds. */
export const refusedRequest = Type.Object({
  /** Unix time in milliseconds, by the clock of Redis. */
  atMs: timeMs,
  /** Null for a public operation, as are the next two. */
  account: owner,
  organization: owner,
  principal: owner,
  /** The client of a public operation; null for any other. */
  address: owner,
  /** Empty for what has none, such as OPTIONS: a blocked address is refused that as well. */
  operation: plainText(2_000),
  status: Type.Integer({ minimum: 100, maximum: 599 }),
  /** The code of the problem body, such as RateLimitExceeded. */
  reason: plainText(100),
  detail: plainText(2_000),
  cost: amount,
  /** The bucket that refused; null unless the reason is RateLimitExceeded. */
  bucket: Type.Union([plainText(100), Type.Null()]),
  /** Seconds until the cost fits; null likewise. */
  retryAfterSeconds: Type.Union([amount, Type.Null()]),
  requestId: plainText(128),
});

export type RefusedRequest = Readonly<Static<typeof refusedRequest>>;

/** What does not fit would keep other replicas from reading the rest. */
export const asRefusedRequest = matching(refusedRequest);

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

/** How many refusals a replica publishes, and how many of one Account, so that one Account cannot fill the list. */
export const PUBLISHED_REFUSALS = 40;
const PUBLISHED_PER_PAYER = 4;

/** The share of a list that addresses may have, because anybody can be refused from many. */
const ADDRESS_SHARE = 0.25;

/** The last refusals of the Accounts and of the addresses that were refused last, at this replica, in bounded memory. */
export class Refusals {
  readonly #byAccount = new RefusalsByPayer(MAX_ACCOUNTS);
  readonly #byAddress = new RefusalsByPayer(MAX_ADDRESSES);
  readonly #nowMs: () => number;

  /** @param nowMs Unix time by the clock of Redis */
  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /** Remembers a finished request if it was refused. */
  requestFinished(context: RequestContext): void {
    const { refusal, operation, charged, requestId } = context;
    const payer = context.caller ?? context.publicClient;
    if (refusal === undefined || payer === undefined) return;
    const { id: asked = '' } = operation ?? {};
    const { account = null, organization = null, principal, address = null } = payer;
    const id = account ?? address;
    if (id === null) return;
    const payers = account === null ? this.#byAddress : this.#byAccount;
    const atMs = this.#nowMs();
    if (isRepeated(payers.lastOf(id), refusal.detail, asked, atMs)) return;
    payers.add(id, {
      atMs,
      account,
      organization,
      principal: principal?.id ?? null,
      address,
      operation: asked,
      status: refusal.status,
      reason: refusal.code,
      detail: refusal.detail,
      cost: costAtAdmission(context),
      bucket: charged?.outcome === 'denied' ? charged.bucket : null,
      retryAfterSeconds: Number(refusal.headers?.['Retry-After'] ?? Number.NaN) || null,
      requestId: ownCopy(requestId),
    });
  }

  /** The most recent ones of all payers, newest first, for other replicas. */
  latest(): readonly RefusedRequest[] {
    const payers = [
      ...this.#byAccount.latest(PUBLISHED_REFUSALS),
      ...this.#byAddress.latest(PUBLISHED_REFUSALS),
    ];
    return mostRecent(
      payers.flatMap((one) => one.slice(-PUBLISHED_PER_PAYER)).flatMap((one) => asRefusedRequest(one) ?? []),
      PUBLISHED_REFUSALS,
    );
  }

  /** The refusals of one owner, newest first. */
  of(owner: RefusedOwner): readonly RefusedRequest[] {
    return newestFirst(this.all().filter((one) => isOf(one, owner)));
  }

  /** All that are remembered. */
  all(): readonly RefusedRequest[] {
    return [...this.#byAccount.latest(), ...this.#byAddress.latest()].flat();
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
  const owners: Readonly<Record<string, string | null>> = { account, organization, address };
  return (Object.hasOwn(owners, scope) ? owners[scope] : principal) === id;
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

import type { Account, Payer, Principal } from '../../domain/caller.ts';
import { US_PER_SECOND } from '../../domain/clock.ts';
import { isContractScope } from '../../domain/limits/rows.ts';
import { type ScopeName, scopeNamed } from '../../domain/limits/scopes.ts';
import type { BlockScope, Blocks } from '../../facts/blocks.ts';
import type { Directory } from '../../identity/identity-source.ts';
import type { Activity } from '../../observe/usage/activity.ts';
import type { Buckets } from '../../stages/buckets/buckets.ts';
import { namedLimit, type PayerBucket, shownPeriod } from '../../stages/buckets/payer-bucket.ts';
import { isOwn } from '../../stages/buckets/plans.ts';
import { type BucketReading, readBuckets } from '../../store/read-buckets.ts';
import { isConcurrent, type Store } from '../../store/store.ts';
import { ActionRefused } from '../action.ts';
import { shownBlock } from '../facts/block-api.ts';
import { type KnownOwners, NOBODY } from '../find/known-owners.ts';
import type { OwnerReports } from '../fleet/owner-reports.ts';
import { slotsByReplica } from './slots-by-replica.ts';

/** The answer to `GET /usage/accounts/{id}`. */
export type Usage = NonNullable<Awaited<ReturnType<typeof readUsage>>>;

/** A bucket as an operator sees it. What the store could not answer is null. */
export type BucketUsage = Usage['buckets'][number];

export interface UsageSources {
  readonly buckets: Buckets;
  readonly store: Store;
  readonly reports: OwnerReports;
  readonly blocks: Blocks;
  readonly owners: KnownOwners;
  readonly directory: Directory;
  readonly activity: Activity;
  /** The Account or Organization of a principal in the identities file. */
  homeOf(principal: string): (Pick<Principal, 'account'> & { readonly organization?: string }) | undefined;
  /** Where the files set the limit of a bucket. */
  writtenAt(bucket: PayerBucket): Promise<string | undefined>;
}

/** What says to whom an owner belongs, and which plan it has. */
export type OwnerSources = Pick<UsageSources, 'buckets' | 'activity' | 'directory' | 'homeOf'>;

const NO_NAMES: ReadonlyMap<string, string> = new Map();

/**
 * Reads what an owner has used, without spending anything; undefined for an owner whose Organization or Account nobody here knows.
 * Rejects with an UnknownOwner for one that does not exist, and with an ActionRefused for one that belongs to others than the query says.
 */
export async function readUsage(query: OwnerQuery, sources: UsageSources) {
  const blockScope = blockScopeOf(query.scope);
  const knowledge = sources.owners.here(blockScope, query.id);
  if (knowledge === 'unknown') throw await sources.owners.unknown(blockScope, query.id, knowledge);
  const found = await findOwner(query, sources);
  if (found === undefined) return undefined;
  const owner = { ...found, principal: sources.activity.payerOf(query.scope, query.id)?.principal };
  const { scope, id, organization, isFound = false } = owner;
  const planned = bucketsOf(owner, sources.buckets);
  const { refusals, accounts, ...sum } = await sources.reports.sumOf({ scope, id }, query.waits ?? true);
  const readings = await readBuckets(sources.store, planned);
  const isRead = readings.outcome === 'read';
  const names = planned.some(isConcurrent) ? await sources.reports.names() : NO_NAMES;
  const buckets = planned.map(async (bucket, index) => {
    const writtenAt = await sources.writtenAt(bucket);
    const live = liveOf(bucket, sources.buckets);
    const reading = isRead ? readings.buckets[index] : undefined;
    return {
      ...limitOf(bucket),
      /** Why the live limit was set, and by whom. */
      ...live,
      /** The file and line that set the limit. */
      writtenAt: writtenAt ?? null,
      ...countOf(bucket, reading),
      /** Who holds the slots of a limit on concurrent requests. */
      ...(isConcurrent(bucket) && { byReplica: slotsByReplica(reading, names) }),
    };
  });
  return {
    scope,
    id,
    organization: organization ?? null,
    /** False if neither a file, a directory nor a request of the last ten minutes shows that the owner exists. */
    isKnown: knowledge === 'known' || isFound || sum.recent['10m'].requests > 0 || refusals.length > 0,
    /** The plan whose limits apply; null without one. */
    plan: sources.buckets.planOf(scope, id, owner) ?? null,
    /** When the figures were measured, by the clock of Redis. */
    asOf: new Date(sources.buckets.nowMs).toISOString(),
    /** Why the store could not be read; null if it was. */
    storeProblem: isRead ? null : readings.reason,
    /** Why everything of the owner is refused: its own block, and the block of its Organization. */
    blocks: blocksOf(owner, sources.blocks),
    buckets: await Promise.all(buckets),
    /** How many replicas are summed in what follows, and of how many. */
    ...sum,
    ...(!isContractScope(scope) && { recent: {} as typeof sum.recent, operations: [] }),
    ...(scope === 'organization' ? { accounts } : {}),
  };
}

/** An Account's requests are refused by the buckets of its Organization as well. */
function bucketsOf(owner: UsageOwner & Pick<Payer, 'principal'>, buckets: Buckets) {
  const { scope, id, organization, hasOrganizationLimit } = owner;
  const own = buckets.ownedBy(scope, id, owner);
  if (scope !== 'account' || organization === undefined || !hasOrganizationLimit) return own;
  return [...own, ...buckets.ownedBy('organization', organization, owner)];
}

function blocksOf({ scope, id, organization }: UsageOwner, blocks: Blocks) {
  const own = blocks.of(blockScopeOf(scope), id);
  return [own, blocks.of('organization', organization)].flatMap((block) =>
    block ? [shownBlock(block)] : [],
  );
}

export function blockScopeOf(scope: ScopeName): BlockScope {
  return scopeNamed(scope).isPerPrincipal ? 'principal' : (scope as BlockScope);
}

function limitOf(bucket: PayerBucket) {
  const { scope, owner, counts, shadow, source, plan, untilMs } = bucket;
  return {
    ...namedLimit(bucket),
    scope,
    owner,
    /** What the limit is of. */
    counts,
    ...shownPeriod(bucket),
    source,
    /** The plan that sets the limit. */
    plan: plan ?? null,
    /** A shadow limit refuses nothing. */
    shadow: shadow === true,
    /** When the override or live limit expires. */
    until: Number.isFinite(untilMs) ? new Date(untilMs).toISOString() : null,
  };
}

function liveOf({ name, owner, source }: PayerBucket, buckets: Buckets) {
  const live = source === 'live' ? buckets.live.of(name, owner, buckets.nowMs) : undefined;
  return { why: live?.why ?? null, by: live?.by ?? null };
}

/** What a bucket has left; null where the store did not answer. */
export function countOf(bucket: PayerBucket, reading: BucketReading | undefined) {
  // Nobody knows when requests in flight will end.
  const ends = isConcurrent(bucket) ? undefined : reading;
  const used = reading?.used ?? null;
  return {
    /** Points of the current window or period, or requests in flight. */
    used,
    ...(isConcurrent(bucket) && { inFlight: used }),
    remaining: reading === undefined ? null : Math.max(0, bucket.limit - reading.used),
    /** Until the first of the used points return. */
    nextPointsAfterSeconds: seconds(ends?.nextPointsAfterUs),
    /** Until the bucket is full again. */
    resetAfterSeconds: seconds(ends?.resetAfterUs),
  };
}

/** Rounded up to a millisecond, so that nothing is promised early. */
function seconds(us: number | undefined): number | null {
  return us === undefined ? null : Math.ceil(us / 1_000) / (US_PER_SECOND / 1_000);
}

/** An Account, Organization, Person or address, and whose limits apply to it. */
interface UsageOwner {
  readonly scope: ScopeName;
  readonly id: string;
  /** The Organization of an Account or of a principal's Account. */
  readonly organization: string | undefined;
  /** The Account of a principal, or an Account of an Organization that was charged. */
  readonly account?: string | undefined;
  /** The plan of the Account, by the token or the directory. */
  readonly plan?: string | undefined;
  /** The day on which its months begin, by the token or the directory. */
  readonly periodStartsOn?: number | undefined;
  readonly hasOrganizationLimit: boolean;
  /** Whether a directory or a request shows that it exists. */
  readonly isFound?: boolean;
  /** The hash tag of its keys. */
  readonly hashTag: string;
}

/** What the admin port is asked about. */
interface OwnerQuery {
  readonly scope: ScopeName;
  readonly id: string;
  /** The Organization of an Account, from somebody who knows it. */
  readonly organization?: string | undefined;
  /** The Principal Account of a Person, likewise. */
  readonly account?: string | undefined;
  /** Whether to wait for replicas that have not reported yet. Default: true. */
  readonly waits?: boolean;
}

/**
 * Finds out which Organization an owner belongs to, because that decides where its buckets are. The files and the
 * directory come first, then what the query says, then the requests that reached this replica. Undefined where none of them knows.
 * Rejects with an ActionRefused if the query names another Account or Organization than the files or the directory.
 */
export async function findOwner(query: OwnerQuery, sources: OwnerSources): Promise<UsageOwner | undefined> {
  const { scope, id } = query;
  const payer = sources.activity.payerOf(scope, id);
  if (scope === 'organization' || scope === 'address') {
    const { account, plan, periodStartsOn } = payer ?? {};
    const owner = { scope, id, organization: undefined, hasOrganizationLimit: false, hashTag: id };
    return { ...owner, account, plan, periodStartsOn };
  }
  const home = scope === 'account' ? { account: id } : sources.homeOf(id);
  if (home?.organization !== undefined) {
    refuseOther({ scope, id }, 'Organization', home.organization, query.organization);
    const { organization } = home;
    return { scope, id, organization, hasOrganizationLimit: true, isFound: true, hashTag: organization };
  }
  if (home !== undefined) refuseOther({ scope, id }, 'Account', home.account, query.account);
  const account = home?.account ?? query.account;
  const known = account === undefined ? undefined : await findAccount(account, query, sources.directory);
  if (known !== undefined && account !== undefined) return ownerIn(query, account, known, payer);
  if (payer === undefined) return undefined;
  const {
    organization,
    account: paying,
    plan,
    periodStartsOn,
    hasOrganizationLimit = false,
    hashTag,
  } = payer;
  return { scope, id, organization, account: paying, plan, periodStartsOn, hasOrganizationLimit, hashTag };
}

/** Refuses a query that names another owner of an Account or principal than the one that is known. */
function refuseOther(
  { scope, id }: Pick<OwnerQuery, 'scope' | 'id'>,
  noun: 'Account' | 'Organization',
  known: string | undefined,
  given: string | undefined,
): void {
  if (given === undefined || given === known) return;
  const owner = known === undefined ? `no ${noun}` : `${noun} ${known}`;
  throw new ActionRefused(`${scopeNamed(scope).noun} ${id} belongs to ${owner}, not to ${given}.`);
}

/** An Account as the directory has it, or in the Organization that the query names. Undefined where neither is known. */
async function findAccount(
  account: string,
  { organization }: OwnerQuery,
  directory: Directory,
): Promise<(Account & { readonly isFound: boolean }) | undefined> {
  const found = await directory.find(account, NOBODY);
  if (found === undefined || found === 'unavailable')
    return organization === undefined ? undefined : { organization, isFound: false };
  refuseOther({ scope: 'account', id: account }, 'Organization', found.organization, organization);
  return { ...found, isFound: true };
}

function ownerIn(
  { scope, id }: OwnerQuery,
  account: string,
  known: Account & { readonly isFound: boolean },
  payer: Payer | undefined,
): UsageOwner {
  const { organization, organizationLimit, isFound } = known;
  // Where no directory has the Account, its payer alone shows what the token says of it.
  const named = isFound || payer?.account !== account ? known : payer;
  const token = isOwn(payer?.principal, account) ? payer?.principal : undefined;
  const plan = token?.plan ?? named?.plan;
  const periodStartsOn = token?.periodStartsOn ?? named?.periodStartsOn;
  const hasOrganizationLimit = organization !== undefined && organizationLimit !== false;
  const hashTag = organization ?? account;
  return { scope, id, organization, account, plan, periodStartsOn, hasOrganizationLimit, isFound, hashTag };
}

import type { Payer, Principal } from '../../domain/caller.ts';
import {
  type AssignedPlan,
  assignedPlan,
  type Limits,
  limitInForce,
  NEVER,
  type OwnerTerms,
  rowNamed,
} from '../../domain/limits/limits.ts';
import { type ScopeName, scopeNamed } from '../../domain/limits/scopes.ts';

/**
 * The plans that decide the limits of one payer, and the Unix time until which they do. `unknown` is the plan that the token or the
 * directory names, and the limits do not have.
 *
 * The plan of an Account is the one that the file assigns to it, or else to its Organization; without either, the one that the token
 * or the directory names. The limits of the Organization come from its own plan, and without one from the Account's plan.
 */
export function plansOf(limits: Limits, payer: Payer, nowMs: number) {
  const { account: id, organization, plan, principal } = payer;
  const ofOrganization = assignedPlan(limits, 'organizations', organization, nowMs);
  const ofAccount = assignedPlan(limits, 'accounts', id, nowMs) ?? ofOrganization;
  const account = ofAccount ?? named(limits, plan);
  const home = principal && homeOf(principal);
  const own = isOwn(home, id) ? account : ownPlan(limits, home, nowMs);
  const assigned = [ofOrganization, ofAccount, own];
  return {
    account,
    // Without plans, the claim of a token that has that name means something else.
    unknown: account === undefined && limits.plans.size > 0 ? plan : undefined,
    untilMs: Math.min(...assigned.map((one) => one?.untilMs ?? NEVER)),
    ofScope(scope: ScopeName): AssignedPlan | undefined {
      const { plan: whose } = scopeNamed(scope);
      const plans = { account, organization: ofOrganization ?? account, principal: own };
      return whose && plans[whose];
    },
  };
}

/** An owner, and where its buckets are. */
export interface BucketOwner extends OwnerTerms {
  readonly hashTag: string;
  /** Undefined outside a request, where none has shown it. */
  readonly principal?: Principal | undefined;
}

/**
 * Whose day the months of a principal begin on, whatever Account it acts for: one bucket counts its requests for all Accounts of an
 * Organization, and would start again with each change of its period.
 */
export function monthsOfPrincipal({ hashTag, principal, account }: BucketOwner): OwnerTerms {
  if (principal === undefined) return { organization: hashTag, account };
  const own = principal.home ?? principal;
  return { organization: hashTag, account: own.account, periodStartsOn: own.periodStartsOn };
}

/** The plan of one owner; undefined without one. */
export function planOfOwner(
  limits: Limits,
  scope: ScopeName,
  id: string,
  { organization, account, plan }: OwnerTerms,
  nowMs: number,
): AssignedPlan | undefined {
  const { plan: whose } = scopeNamed(scope);
  if (whose === undefined) return undefined;
  const ofAccount = assignedPlan(limits, 'accounts', scope === 'account' ? id : account, nowMs);
  const isOrganization = whose === 'organization';
  const ofOrganization = assignedPlan(limits, 'organizations', isOrganization ? id : organization, nowMs);
  const assigned = isOrganization ? (ofOrganization ?? ofAccount) : (ofAccount ?? ofOrganization);
  return assigned ?? named(limits, plan);
}

/** What the files set for a bucket of one owner; undefined if the limits have no such row. */
export function filedLimitOf(
  limits: Limits,
  bucket: string,
  id: string,
  owner: OwnerTerms,
  nowMs: number,
): number | 'none' | undefined {
  const row = rowNamed(limits, bucket);
  if (row === undefined) return undefined;
  const plan = planOfOwner(limits, row.scope, id, owner, nowMs);
  return limitInForce(limits, row, id, plan, nowMs).limit ?? 'none';
}

function named({ plans }: Limits, name: string | undefined): AssignedPlan | undefined {
  return name !== undefined && plans.has(name) ? { name } : undefined;
}

/** What a principal has of its own, also where its key belongs to another Account and names the plan of that one. */
export function homeOf(principal: Principal): OwnerTerms {
  const { home } = principal;
  return home === undefined || home.isGuess === true ? principal : home;
}

/**
 * Whether an Account belongs to the owner of a token or key, so that what the token says is of this Account: the principal's own one, or
 * one of its own Organization, or the one that the key belongs to.
 */
export function isOwn(owner: OwnerTerms | undefined, account: Payer['account']): boolean {
  return owner?.account === undefined || owner.account === account;
}

/** The plan of a principal that acts for a foreign Account. */
function ownPlan(limits: Limits, home: OwnerTerms | undefined, nowMs: number): AssignedPlan | undefined {
  return assignedPlan(limits, 'accounts', home?.account, nowMs) ?? named(limits, home?.plan);
}

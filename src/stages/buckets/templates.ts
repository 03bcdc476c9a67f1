import type { Caller } from '../../domain/caller.ts';
import type { Limits } from '../../domain/limits/limits.ts';
import { isConcurrent } from '../../store/store.ts';
import type { PayerBuckets } from './buckets.ts';
import { bucketLike, isValid, type RowSet } from './payer-bucket.ts';

/** Templates of each row set. Tokens may name as many plans as they like. */
const MOST_TEMPLATES = 256;

/**
 * The buckets of callers whom no file and no live limit names. All of them have the same, but for owners and keys. Making these takes
 * less time than finding them among a million, and nothing of them has to stay in memory.
 */
export class Templates {
  readonly #bySet = new Map<RowSet, Map<string, PayerBuckets>>();

  /** @returns what `make` has returned for the first such caller, with this caller's owners and keys */
  like(caller: Caller, set: RowSet, keyPrefix: string, make: () => PayerBuckets, nowMs: () => number) {
    let ofSet = this.#bySet.get(set);
    if (ofSet === undefined) {
      ofSet = new Map();
      this.#bySet.set(set, ofSet);
    }
    const kind = kindOf(caller);
    const template = ofSet.get(kind);
    if (template !== undefined && isValid(template, nowMs)) return likeTemplate(template, caller, keyPrefix);
    if (ofSet.size >= MOST_TEMPLATES) ofSet.clear();
    const made = make();
    ofSet.set(kind, made);
    return made;
  }
}

/** Whether a file says anything of this caller by name. */
export function isNamed({ accounts, organizations, principals }: Limits, caller: Caller): boolean {
  const { account, organization, principal } = caller;
  if (accounts.size > 0) {
    if (accounts.has(account)) return true;
    if (principal.account !== undefined && accounts.has(principal.account)) return true;
  }
  if (organizations.size > 0 && organization !== undefined && organizations.has(organization)) return true;
  return principals.size > 0 && principals.has(principal.id);
}

/** What the buckets depend on besides owners: which scopes apply, the plans, and the first day of months. */
function kindOf({ principal, account, hasOrganizationLimit, plan, periodStartsOn }: Caller): string {
  const scopes = SCOPES_THAT_APPLY[(hasOrganizationLimit ? 1 : 0) + (principal.type === 'Person' ? 2 : 0)];
  const own = principal.account === undefined || principal.account === account ? plan : principal.plan;
  if (plan === undefined && own === undefined && periodStartsOn === undefined) return scopes ?? '';
  return `${scopes}\n${plan ?? ''}\n${own ?? ''}\n${periodStartsOn ?? ''}`;
}

const SCOPES_THAT_APPLY = ['service', 'service organization', 'person', 'person organization'];

function likeTemplate(template: PayerBuckets, caller: Caller, keyPrefix: string): PayerBuckets {
  const buckets = template.buckets.map((one) => bucketLike(one, caller, keyPrefix));
  const endless = template.endless && {
    ...template.endless,
    buckets: buckets.filter((one) => !isConcurrent(one)),
    kind: template.endless.buckets,
  };
  return { ...template, buckets, kind: template.buckets, endless };
}

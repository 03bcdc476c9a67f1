import type { Caller } from '../../domain/caller.ts';
import type { Limits } from '../../domain/limits/limits.ts';
import { isConcurrent } from '../../store/store.ts';
import type { PayerBuckets } from './buckets.ts';
import { bucketLike, isValid, type RowSet } from './payer-bucket.ts';
import { homeOf, isOwn } from './plans.ts';

/** Templates of each row set. Tokens may name as many plans as they like. */
const MOST_TEMPLATES = 256;

/** Copies of each row set that are kept, so that a request of a few busy callers allocates none. */
const MOST_COPIES = 1_000;

/** Copies that are made before others may be kept. */
const MADE_UNTIL_OTHERS = 100_000;

interface TemplateParts {
  readonly keyPrefix: string;
  nowMs(): number;
  /** The buckets of a caller, as of now. */
  make(caller: Caller, set: RowSet): PayerBuckets;
}

/**
 * The buckets of callers whom no file and no live limit names. All of them have the same, but for owners and keys. Making these takes
 * less time than finding them among a million, and only a few of them stay in memory.
 */
export class Templates {
  readonly #parts: TemplateParts;
  readonly #bySet = new Map<RowSet, TemplatesOfSet>();

  constructor(parts: TemplateParts) {
    this.#parts = parts;
  }

  /** What was made for the first such caller, with this caller's owners and keys. */
  like(caller: Caller, set: RowSet): PayerBuckets {
    let ofSet = this.#bySet.get(set);
    if (ofSet === undefined) {
      ofSet = new TemplatesOfSet(set, this.#parts);
      this.#bySet.set(set, ofSet);
    }
    return ofSet.like(caller);
  }
}

class TemplatesOfSet {
  readonly #set: RowSet;
  readonly #parts: TemplateParts;
  readonly #templates = new Map<string, PayerBuckets>();
  readonly #copies = new Map<string, { template: PayerBuckets; caller: Caller; due: PayerBuckets }>();
  #made = 0;

  constructor(set: RowSet, parts: TemplateParts) {
    this.#set = set;
    this.#parts = parts;
  }

  like(caller: Caller): PayerBuckets {
    const { make, nowMs } = this.#parts;
    const kind = kindOf(caller);
    const template = this.#templates.get(kind);
    if (template !== undefined && isValid(template, nowMs)) return this.#copyFor(caller, template);
    if (this.#templates.size >= MOST_TEMPLATES) this.#templates.clear();
    const made = make(caller, this.#set);
    this.#templates.set(kind, made);
    return made;
  }

  #copyFor(caller: Caller, template: PayerBuckets): PayerBuckets {
    const id = this.#set.access === 'person' ? caller.principal.id : caller.account;
    const kept = this.#copies.get(id);
    if (kept?.template === template && haveSameOwners(kept.caller, caller, this.#set)) return kept.due;
    const due = likeTemplate(template, caller, this.#parts.keyPrefix);
    this.#made += 1;
    if (this.#made % MADE_UNTIL_OTHERS === 0) this.#copies.clear();
    if (kept !== undefined || this.#copies.size < MOST_COPIES)
      this.#copies.set(id, { template, caller, due });
    return due;
  }
}

/** Whether callers with the same Account, or the same principal for a Person's operations, have the same buckets. */
function haveSameOwners(one: Caller, other: Caller, { isPerPrincipal }: RowSet): boolean {
  if (one.hashTag !== other.hashTag || one.organization !== other.organization) return false;
  return !isPerPrincipal || one.principal.id === other.principal.id;
}

/** Whether a file says anything of this caller by name. */
export function isNamed({ accounts, organizations, principals }: Limits, caller: Caller): boolean {
  const { account, organization, principal, hashTag } = caller;
  if (accounts.size > 0) {
    if (accounts.has(account)) return true;
    if (isKey(accounts, principal.account) || isKey(accounts, principal.home?.account)) return true;
  }
  // The Organization of a Person's own Account may be another one.
  if (organizations.size > 0 && (isKey(organizations, organization) || organizations.has(hashTag)))
    return true;
  return principals.size > 0 && principals.has(principal.id);
}

function isKey(overrides: ReadonlyMap<string, unknown>, id: string | undefined): boolean {
  return id !== undefined && overrides.has(id);
}

/** What the buckets depend on besides owners: which scopes apply, the plans, and the first day of months. */
function kindOf(caller: Caller): string {
  const { principal, hasOrganizationLimit, plan, periodStartsOn } = caller;
  const scopes = SCOPES_THAT_APPLY[(hasOrganizationLimit ? 1 : 0) + (principal.type === 'Person' ? 2 : 0)];
  const home = homeOf(principal);
  const own = isOwn(home, caller.account) ? plan : home.plan;
  const ownStart = (principal.home ?? principal).periodStartsOn;
  const start = periodStartsOn ?? ownStart;
  if (plan === undefined && own === undefined && start === undefined) return scopes ?? '';
  return `${scopes}\n${plan ?? ''}\n${own ?? ''}\n${periodStartsOn ?? ''}\n${ownStart ?? ''}`;
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

import { pino } from 'pino';
import type { Caller, Principal } from '../../domain/caller.ts';
import type { FieldError } from '../../domain/field-errors.ts';
import { FieldErrors } from '../../domain/field-errors.ts';
import { authorise } from '../../gateway/authorise.ts';
import { Buckets } from '../../gateway/buckets.ts';
import { identify } from '../../gateway/identify.ts';
import { OperationTable } from '../../gateway/match.ts';
import { normalise } from '../../gateway/normalise.ts';
import { Refusal } from '../../gateway/problems.ts';
import type { Operation, Target } from '../../gateway/request-context.ts';
import { silentIdentityObserver } from '../../identity/observer.ts';
import { openIdentity } from '../../identity/open.ts';
import type { ListedOperation } from '../../openapi/listed-operation.ts';
import { checkPath } from '../../validation/path.ts';
import { checkQuery } from '../../validation/query.ts';
import type { Configuration } from '../configuration.ts';

/** What someone asks about. */
export interface Question {
  readonly method: string;
  readonly path: string;
  readonly token: string | undefined;
  readonly account: string | undefined;
}

/** What the gateway would do with such a request, found by the stages that would do it. Nothing is charged. */
export interface Explanation {
  readonly method: string;
  /** The canonical path; the one that was asked about where it is refused. */
  readonly path: string;
  /** `free` for OPTIONS. */
  readonly operation: ListedOperation | Operation | 'free' | undefined;
  /** Undefined where neither a token nor an Account was named, or where the request is refused before. */
  readonly caller: Caller | undefined;
  readonly buckets: readonly ExplainedBucket[];
  /** The RateLimit-Policy field. */
  readonly policy: string | undefined;
  /** What a 422 would name, of the path and the query that were asked about. */
  readonly errors: readonly FieldError[];
  /** Why the request would end before it is charged. */
  readonly refusal: Refusal | undefined;
}

interface ExplainedBucket {
  readonly bucket: string;
  /** Whose bucket it is; undefined for anyone without an override. */
  readonly of: string | undefined;
  readonly limit: number;
  readonly windowSeconds: number;
  /** A limit that is tried out refuses nothing. */
  readonly shadow: boolean;
}

/** Stands for an Account that has no overrides; no real id is empty. */
const ANYONE = '';

export async function explainRequest(configuration: Configuration, question: Question): Promise<Explanation> {
  const { settings, operations } = configuration;
  const nothing = {
    method: question.method,
    path: question.path,
    operation: undefined,
    caller: undefined,
    buckets: [],
    policy: undefined,
    errors: [],
    refusal: undefined,
  };
  const { pathProfile } = settings.upstream;
  const target = normalise(question.path, pathProfile);
  if (target instanceof Refusal) return { ...nothing, refusal: target };
  const { path } = target;

  const prices = new OperationTable(operations, settings.operations.unlisted, pathProfile.case);
  const operation = prices.find(question.method, path);
  if (operation instanceof Refusal) return { ...nothing, path, refusal: operation };
  if (operation === 'free') return { ...nothing, path, operation };

  const caller = await findCaller(configuration, question, operation);
  if (caller instanceof Refusal) return { ...nothing, path, operation, refusal: caller };
  return {
    ...nothing,
    path,
    operation,
    caller: caller.account === ANYONE ? undefined : caller,
    buckets: bucketsOf(configuration, caller, operation),
    policy: planOf(configuration, caller, operation).policy,
    errors: errorsOf(operation, target),
  };
}

/** The caller that a token proves; without one, anybody who may act for the Account that is named. */
async function findCaller(
  configuration: Configuration,
  { token, account }: Question,
  operation: Operation,
): Promise<Caller | Refusal> {
  const log = pino({ level: 'silent' });
  const { source, directory } = openIdentity(configuration.settings.identity, configuration, {
    observer: silentIdentityObserver,
    log,
  });
  if (token !== undefined) {
    const principal = await identify(source, `Bearer ${token}`);
    return principal instanceof Refusal ? principal : authorise(directory, principal, operation, account);
  }
  const anybody: Principal = { id: ANYONE, type: 'Person', account: account ?? ANYONE, actsFor: new Set() };
  if (account !== undefined) {
    const caller = await authorise(directory, anybody, operation, account);
    return caller instanceof Refusal && knowsTokensOnly(configuration)
      ? unknownAccount(anybody, account)
      : caller;
  }
  return {
    principal: anybody,
    account: ANYONE,
    organization: ANYONE,
    hasOrganizationLimit: true,
    shard: ANYONE,
  };
}

/** Whether what is known of Accounts stands in tokens: without one, nobody can tell an Account's Organization. */
function knowsTokensOnly({ settings: { identity } }: Configuration): boolean {
  return 'directory' in identity && identity.directory.kind === 'claims';
}

function unknownAccount(principal: Principal, account: string): Caller {
  return { principal, account, organization: undefined, hasOrganizationLimit: false, shard: account };
}

function errorsOf({ rules }: Operation, { path, search }: Target): readonly FieldError[] {
  const errors = new FieldErrors();
  if (rules === undefined) return [];
  checkPath(rules.path, path, errors);
  checkQuery(rules.query, search, errors);
  return errors.list;
}

function planOf({ settings, limits }: Configuration, caller: Caller, { kind, personOnly }: Operation) {
  return new Buckets(settings.store.keyPrefix, limits).planFor(caller, kind, personOnly);
}

function bucketsOf(
  configuration: Configuration,
  caller: Caller,
  operation: Operation,
): readonly ExplainedBucket[] {
  const { buckets, windowSeconds } = planOf(configuration, caller, operation);
  return buckets.map(({ name, owner, limit, shadow = false }) => ({
    bucket: name,
    of: owner || undefined,
    limit,
    windowSeconds,
    shadow,
  }));
}

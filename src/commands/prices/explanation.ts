import { pino } from 'pino';
import type { Awaitable } from '../../domain/awaitable.ts';
import type { Caller, Principal } from '../../domain/caller.ts';
import type { FieldError } from '../../domain/field-errors.ts';
import { FieldErrors } from '../../domain/field-errors.ts';
import type { LiveLimit } from '../../domain/live-limits.ts';
import { networkOf } from '../../domain/network.ts';
import { Buckets, type PlannedBucket } from '../../gateway/buckets.ts';
import { decide } from '../../gateway/decide.ts';
import { normalise } from '../../gateway/normalise.ts';
import { Refusal } from '../../gateway/problems.ts';
import type { Findings, Operation, Target } from '../../gateway/request-context.ts';
import type { Directory, IdentitySource } from '../../identity/identity.ts';
import { silentIdentityObserver } from '../../identity/observer.ts';
import { openIdentity } from '../../identity/open.ts';
import type { ListedOperation } from '../../openapi/listed-operation.ts';
import { MemoryStore } from '../../store/memory-store.ts';
import { checkPath } from '../../validation/path.ts';
import { checkQuery } from '../../validation/query.ts';
import { type Configuration, operationTableOf } from '../configuration.ts';

/** The request to explain. */
export interface Question {
  readonly method: string;
  readonly path: string;
  readonly token: string | undefined;
  readonly account: string | undefined;
  /** The client's address, for a public operation. */
  readonly address: string | undefined;
  /** The live limits in force at the gateways. */
  readonly liveLimits: readonly LiveLimit[];
}

/** What the gateway would do with such a request, from the same `decide`. Nothing is charged. */
export interface Explanation {
  readonly method: string;
  /** The canonical path; the given path if it is refused. */
  readonly path: string;
  /** `free` for OPTIONS. */
  readonly operation: ListedOperation | Operation | 'free' | undefined;
  /** Undefined where neither a token nor an Account was named, or where the request is refused earlier. */
  readonly caller: Caller | undefined;
  readonly buckets: readonly ExplainedBucket[];
  /** The RateLimit-Policy field. */
  readonly policy: string | undefined;
  /** The errors that a 422 would list for this path and query. */
  readonly errors: readonly FieldError[];
  /** Why the request would be refused, with all buckets full of points. */
  readonly refusal: Refusal | undefined;
}

interface ExplainedBucket {
  readonly bucket: string;
  /** The bucket's owner; undefined for anyone without an override. */
  readonly of: string | undefined;
  readonly limit: number;
  readonly windowSeconds: number;
  /** A shadow limit refuses nothing. */
  readonly shadow: boolean;
  /** When a live limit expires, and who set it and why. */
  readonly live?: { readonly until: string; readonly why: string; readonly by: string };
}

/** An Account or address without overrides; no real id is empty. */
const ANYONE = '';

export async function explainRequest(configuration: Configuration, question: Question): Promise<Explanation> {
  const { method, path } = question;
  const { store, upstream } = configuration.settings;
  const nothing = {
    method,
    path,
    operation: undefined,
    caller: undefined,
    buckets: [],
    policy: undefined,
    errors: [],
    refusal: undefined,
  };
  const table = operationTableOf(configuration);
  const target = normalise(path, upstream.pathProfile, (slashed) => table.declaresSlash(method, slashed));
  if (target instanceof Refusal) return { ...nothing, refusal: target };

  const findings: Findings = {};
  const buckets = new Buckets(store.keyPrefix, configuration.limits);
  for (const limit of question.liveLimits) buckets.applyLive(limit);
  const refusal = await decideAlone(configuration, question, target, findings, buckets);
  const { operation, caller, charged } = findings;
  const payer = caller ?? findings.publicClient;
  if (operation === undefined && refusal === undefined) {
    return { ...nothing, path: target.path, operation: 'free' };
  }
  const found = { ...nothing, path: target.path, operation, refusal };
  const errors = operation === undefined ? [] : errorsOf(operation, target);
  if (operation === undefined || payer === undefined) return { ...found, errors: refusal ? [] : errors };
  const plan = buckets.planFor(payer, operation.kind, operation.access);
  return {
    ...found,
    caller: caller?.account === ANYONE ? undefined : caller,
    buckets: plan.buckets.map((bucket) => explainBucket(bucket, plan.windowSeconds, buckets)),
    policy: charged?.policy,
    errors,
  };
}

/** Calls `decide` with a store of its own, so that nothing is really charged. */
function decideAlone(
  configuration: Configuration,
  { method, token, account, address }: Question,
  { path }: Target,
  findings: Findings,
  buckets: Buckets,
): Awaitable<Refusal | undefined> {
  return decide(
    {
      method,
      path,
      authorization: `Bearer ${token ?? ANYONE}`,
      client: () => (address === undefined ? ANYONE : (networkOf(address) ?? address)),
      namedAccount: account,
    },
    findings,
    {
      ...openCallers(configuration, token, account),
      credentials: [],
      operations: operationTableOf(configuration),
      buckets,
      store: new MemoryStore(),
      onStoreFailure: 'reject',
    },
  );
}

/** The configured identities for a token; without a token, a caller who may act for the given Account. */
function openCallers(
  configuration: Configuration,
  token: string | undefined,
  account: string | undefined,
): { readonly identities: IdentitySource; readonly directory: Directory } {
  const { source, directory } = openIdentity(configuration.settings.identity, configuration, {
    observer: silentIdentityObserver,
    log: pino({ level: 'silent' }),
  });
  if (token !== undefined) return { identities: source, directory };
  const anybody: Principal = { id: ANYONE, type: 'Person', account: account ?? ANYONE, actsFor: new Set() };
  const identities = { principalOf: () => anybody };
  if (account === undefined) return { identities, directory: { find: () => ({ organization: ANYONE }) } };
  return { identities, directory: knowsTokensOnly(configuration) ? { find: () => ({}) } : directory };
}

/** Whether only tokens name Organizations, so that the Organization of an Account is unknown without one. */
function knowsTokensOnly({ settings: { identity } }: Configuration): boolean {
  return 'directory' in identity && identity.directory.kind === 'claims';
}

function explainBucket(
  { name, owner, limit, source, shadow = false }: PlannedBucket,
  windowSeconds: number,
  buckets: Buckets,
): ExplainedBucket {
  const explained = { bucket: name, of: owner || undefined, limit, windowSeconds, shadow };
  const live = source === 'live' ? buckets.live.find(name, owner, Date.now()) : undefined;
  if (live === undefined) return explained;
  const { untilMs, why, by } = live;
  return { ...explained, live: { until: new Date(untilMs).toISOString(), why, by } };
}

function errorsOf({ rules }: Operation, { path, search }: Target): readonly FieldError[] {
  const errors = new FieldErrors();
  if (rules === undefined) return [];
  checkPath(rules.path, path, errors);
  checkQuery(rules.query, search, errors);
  return errors.list;
}

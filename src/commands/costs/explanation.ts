import { pino } from 'pino';
import type { ReplicaSlots } from '../../admin/usage/slots-by-replica.ts';
import { costliestByRow, rowsInPoints } from '../../config/checks/costs.ts';
import type { Awaitable } from '../../domain/awaitable.ts';
import type { Principal } from '../../domain/caller.ts';
import type { FieldError } from '../../domain/field-errors.ts';
import { FieldErrors } from '../../domain/field-errors.ts';
import { Refusal } from '../../domain/problems.ts';
import { type Block, Blocks } from '../../facts/blocks.ts';
import type { RecordedFacts } from '../../facts/fact-record.ts';
import type { LiveLimit } from '../../facts/live-limits.ts';
import { type Revocation, Revocations } from '../../facts/revocations.ts';
import { silentIdentityObserver } from '../../identity/identity-observer.ts';
import type { Directory, IdentitySource } from '../../identity/identity-source.ts';
import { openIdentity } from '../../identity/open-identity.ts';
import { checkPath } from '../../operations/validation/path-and-headers.ts';
import { checkQuery } from '../../operations/validation/query.ts';
import { type Configuration, chargedOperations, operationTableOf } from '../../process/configuration.ts';
import { Buckets } from '../../stages/buckets/buckets.ts';
import { namedLimit, type PayerBucket, shownPeriod } from '../../stages/buckets/payer-bucket.ts';
import { CHARGE_STAGES, MATCH_STAGES, runStages } from '../../stages/decide.ts';
import { refuseUsageMethod } from '../../stages/match.ts';
import { normalise } from '../../stages/normalise.ts';
import { type Operation, RequestContext, type Target } from '../../stages/request-context.ts';
import { MemoryStore } from '../../store/memory-store.ts';
import { isConcurrent } from '../../store/store.ts';
import { reasonOf } from './refusal-reason.ts';

/** The request to explain. */
export interface RequestToExplain {
  readonly method: string;
  readonly path: string;
  readonly token: string | undefined;
  readonly account: string | undefined;
  /** The client's address in its canonical form, for a public operation. */
  readonly address: string | undefined;
  /** What is in force at the gateways besides the files. */
  readonly live: LiveState;
}

export interface LiveState {
  readonly limits: RecordedFacts<LiveLimit>;
  readonly blocks: RecordedFacts<Block>;
  readonly revocations: RecordedFacts<Revocation>;
  /** Who holds the slots of buckets that count concurrent requests, by key; undefined where that is unknown. */
  slotsOf(
    buckets: readonly PayerBucket[],
  ): Promise<ReadonlyMap<string, readonly ReplicaSlots[] | null> | undefined>;
}

/** What the gateway would do with such a request, from the same `decide`. Nothing is charged. */
export type Explanation = Awaited<ReturnType<typeof explainRequest>>;

/** An Account or address without overrides; no real id is empty. */
const ANYONE = '';

export async function explainRequest(configuration: Configuration, question: RequestToExplain) {
  const { method, path } = question;
  const { store, upstream } = configuration.settings;
  const nothing = {
    method,
    /** The canonical path; the given path if it is refused. */
    path,
    /** `free` for OPTIONS, `own limits` for the path of `usage.path`. */
    operation: undefined,
    /** Undefined where neither a token nor an Account was named, or where the request is refused earlier. */
    caller: undefined,
    /** The plan of the Account, whose limits apply. */
    plan: undefined,
    buckets: [],
    /** The RateLimit-Policy field. */
    policy: undefined,
    /** The errors that a 422 would list for this path and query. */
    errors: [],
    /** Why the request would be refused, with all buckets full of points. */
    refusal: undefined,
    /** What the client of a 401 or 403 does not learn. */
    reason: undefined,
    /** What cannot be known about the Account that was named. */
    note: undefined,
  };
  const table = operationTableOf(configuration);
  const target = normalise(path, upstream.pathProfile, (folded) => table.servesSlash(method, folded));
  if (target instanceof Refusal) return { ...nothing, refusal: target };
  const own = answeredByGateway(method, target, configuration);
  if (own !== undefined) return { ...nothing, path: target.path, ...own };

  const request = requestOf(question, target);
  const { facts: limits, clock } = question.live.limits;
  const { rows } = configuration.limits;
  const { fields } = configuration.settings.limits;
  const buckets = new Buckets(store.keyPrefix, configuration.limits, () => clock.nowMs(), fields);
  const costed = chargedOperations(configuration.operations, configuration.settings);
  buckets.replaceCosts(costliestByRow(costed, rows), rowsInPoints(costed, rows));
  for (const limit of limits) buckets.applyLive(limit);
  const refusal = await decideAlone(configuration, question, request, buckets);
  const { operation, caller, publicClient, charged } = request;
  const payer = caller ?? publicClient;
  if (operation === undefined && refusal === undefined) {
    return { ...nothing, path: target.path, operation: 'free' as const };
  }
  const reason = await reasonOf(refusal, question, request, configuration);
  const note = noteOn(question, configuration);
  const found = { ...nothing, path: target.path, operation, refusal, reason, note };
  const errors = errorsOf(operation, target);
  if (operation === undefined || payer === undefined) return { ...found, errors: refusal ? [] : errors };
  const due = buckets.bucketsFor(payer, operation);
  const known = { ...found, caller: caller?.account === ANYONE ? undefined : caller, plan: due.plan };
  // Nothing is charged to a caller who is blocked.
  if (charged?.policy === '') return known;
  const slots = await slotsOf(configuration, question, due.buckets);
  return {
    ...known,
    buckets: due.buckets.map((bucket) => explainBucket(bucket, buckets, slots?.get(bucket.key))),
    policy: charged?.policy,
    errors,
  };
}

/** What becomes of a request that the gateway itself answers, on the port for clients; undefined for any other. */
function answeredByGateway(method: string, { path }: Target, { settings: { usage, listen } }: Configuration) {
  if (path !== usage.path || listen.port === 'off') return undefined;
  const operation = method === 'OPTIONS' ? ('free' as const) : ('own limits' as const);
  return { operation, refusal: refuseUsageMethod(method) };
}

/** The question as a request. */
function requestOf({ method, token, account, address }: RequestToExplain, target: Target): RequestContext {
  const fields: Readonly<Record<string, string | undefined>> = {
    authorization: `Bearer ${token ?? ANYONE}`,
    'x-service-account': account,
  };
  const source = { field: (name: string) => fields[name], valuesOf: () => [] };
  const request = new RequestContext(source, method, target.path);
  request.target = target;
  request.clientAddress = address ?? ANYONE;
  request.seesEnd = true;
  return request;
}

/** Runs the stages with a store of its own, so that nothing is really charged. */
function decideAlone(
  configuration: Configuration,
  { token, account, live }: RequestToExplain,
  request: RequestContext,
  buckets: Buckets,
): Awaitable<Refusal | undefined> {
  return runStages([...MATCH_STAGES, ...CHARGE_STAGES], request, {
    ...openCallers(configuration, token, account, live.revocations),
    credentials: [],
    operations: operationTableOf(configuration),
    buckets,
    blocks: blocksOf(live.blocks),
    store: new MemoryStore(),
    onStoreFailure: 'reject',
  });
}

function blocksOf({ facts, clock }: RecordedFacts<Block>): Blocks {
  const blocks = new Blocks(clock);
  for (const block of facts) blocks.add(block, clock.nowMs());
  return blocks;
}

/** The configured identities for a token; without a token, a caller who may act for the given Account. */
function openCallers(
  configuration: Configuration,
  token: string | undefined,
  account: string | undefined,
  { facts, clock }: RecordedFacts<Revocation>,
): { readonly identities: IdentitySource; readonly directory: Directory } {
  const revocations = new Revocations(() => clock.nowMs());
  for (const revocation of facts) revocations.add(revocation);
  const silent = { observer: silentIdentityObserver, log: pino({ level: 'silent' }) };
  const { identity } = configuration.settings;
  const { source, directory } = openIdentity(identity, configuration, silent, revocations);
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

function noteOn({ token, account }: RequestToExplain, configuration: Configuration): string | undefined {
  if (account === undefined || token !== undefined || !knowsTokensOnly(configuration)) return undefined;
  if (configuration.limits.accounts.has(account)) return undefined;
  return `whether ${account} exists, its plan and its Organization are unknown: only tokens name them, see --token`;
}

/** Where only tokens name the Organization, the bucket of an Account cannot be found without one. */
async function slotsOf(
  configuration: Configuration,
  { token, live }: RequestToExplain,
  buckets: readonly PayerBucket[],
): ReturnType<LiveState['slotsOf']> {
  if (token === undefined && knowsTokensOnly(configuration)) return undefined;
  return live.slotsOf(buckets.filter((one) => isConcurrent(one) && one.owner !== ANYONE));
}

function explainBucket(bucket: PayerBucket, buckets: Buckets, byReplica?: readonly ReplicaSlots[] | null) {
  const { name, owner, counts, source, shadow = false } = bucket;
  const live = source === 'live' ? buckets.live.of(name, owner, buckets.nowMs) : undefined;
  return {
    ...namedLimit(bucket),
    ...shownPeriod(bucket),
    /** Undefined for anyone without an override. */
    of: owner || undefined,
    /** What the limit is of, where that is not points. */
    ...(counts !== 'points' && { counts }),
    /** A shadow limit refuses nothing. */
    shadow,
    /** When a live limit expires, and who set it and why. */
    ...(live && { live: { until: new Date(live.untilMs).toISOString(), why: live.why, by: live.by } }),
    /** The slots in use of a limit on concurrent requests, where they can be read. */
    ...(byReplica && { inFlight: byReplica.reduce((sum, { inFlight }) => sum + inFlight, 0), byReplica }),
  };
}

function errorsOf(operation: Operation | undefined, { path, search }: Target): readonly FieldError[] {
  const errors = new FieldErrors();
  const rules = operation?.rules;
  if (rules === undefined) return [];
  checkPath(rules.path, path, errors);
  checkQuery(rules.query, search, errors);
  return errors.list;
}

/** The stages that need no HTTP: they decide whether a request may pass, and charge it. */
import { type Awaitable, andThenWith, isLate } from '../domain/awaitable.ts';
import type { Caller } from '../domain/caller.ts';
import { Refusal, UNCOUNTED } from '../domain/problems.ts';
import type { Blocks } from '../facts/blocks.ts';
import type { Store } from '../store/store.ts';
import { authorise } from './authorise.ts';
import { blockedAddress, blockedCaller } from './blocked.ts';
import type { Buckets } from './buckets/buckets.ts';
import { charge } from './charge.ts';
import { type Identified, identify, type RefusedToken, type Verifiers } from './identify.ts';
import { LastPayer } from './last-payer.ts';
import type { OperationTable } from './match.ts';
import type { Charged, RequestContext, RequestSource } from './request-context.ts';

/**
 * One step of a request. It reads what earlier stages wrote to the request, and adds its own results. What it returns ends the
 * request, such as a refusal; after undefined, the next stage follows.
 */
export type Stage<
  Source extends RequestSource = RequestSource,
  Shared = DecisionDependencies,
  End = Refusal,
> = (request: RequestContext<Source>, shared: Shared) => Awaitable<End | undefined>;

/** Runs stages in order, and returns what ended the request. Synchronous if every stage is, which avoids a promise per request. */
export function runStages<Source extends RequestSource, Shared, End>(
  stages: readonly Stage<Source, Shared, End>[],
  request: RequestContext<Source>,
  shared: Shared,
  first = 0,
): Awaitable<End | undefined> {
  for (let index = first; index < stages.length; index++) {
    const end = stages[index]?.(request, shared);
    if (isLate(end)) return andThenWith(end, runRest, { stages, request, shared, next: index + 1 });
    if (end !== undefined) return end;
  }
  return undefined;
}

/** Runs the stages behind one that ended later. */
function runRest<Source extends RequestSource, Shared, End>(
  end: End | undefined,
  rest: {
    readonly stages: readonly Stage<Source, Shared, End>[];
    readonly request: RequestContext<Source>;
    readonly shared: Shared;
    readonly next: number;
  },
): Awaitable<End | undefined> {
  return end ?? runStages(rest.stages, rest.request, rest.shared, rest.next);
}

/** What these stages depend on. Operations, identities and limits can be replaced while the gateway runs. */
export interface DecisionDependencies extends Verifiers {
  readonly operations: OperationTable;
  readonly buckets: Buckets;
  readonly store: Store;
  readonly blocks: Blocks;
  /** Whether a request that the store could not count is served or rejected. With `share`, the store of this gateway limits it. */
  readonly onStoreFailure: 'serve' | 'reject' | 'share';
}

/** The stages that find out who calls, and for which Account. The request has its operation. */
export const CALLER_STAGES: readonly Stage[] = [identifyCaller, authoriseCaller, refuseBlockedCaller];

/** The stages that find out what is asked for, and who asks. The request has its target, and its address is not blocked. */
export const UNBLOCKED_STAGES: readonly Stage[] = [matchOperation, ...CALLER_STAGES.map(unlessFree)];

/** As `UNBLOCKED_STAGES`, for a request whose address may be blocked. */
export const MATCH_STAGES: readonly Stage[] = [matchUnlessBlocked, ...CALLER_STAGES.map(unlessFree)];

/** The stages that spend the points. They follow `MATCH_STAGES` or `UNBLOCKED_STAGES`. */
export const CHARGE_STAGES: readonly Stage[] = [unlessFree(chargePoints), refuseUncounted];

export function matchOperation(request: RequestContext, { operations }: DecisionDependencies) {
  const { path, folded } = request.canonicalTarget;
  const operation = operations.find(request.method, path, folded);
  if (operation instanceof Refusal) return operation;
  const { askedCost } = request.source;
  if (operation !== 'free') {
    request.operation = askedCost === undefined ? operation : { ...operation, cost: askedCost };
  }
  return undefined;
}

/** What does not exist is refused as well. The operation comes first, because the log and the usage name it. */
function matchUnlessBlocked(request: RequestContext, shared: DecisionDependencies) {
  const refusal = matchOperation(request, shared);
  return refuseBlockedAddress(request, shared) ?? refusal;
}

/** What is free is refused as well, and a token is not even looked at. */
export function refuseBlockedAddress(
  request: RequestContext,
  { blocks }: DecisionDependencies,
): Refusal | undefined {
  if (blocks.isEmpty) return undefined;
  const address = request.clientNetwork;
  request.charged = blockedAddress(blocks, address, request.operation?.cost ?? 0);
  if (request.charged === undefined) return undefined;
  request.publicClient = { address, hashTag: address };
  return request.charged.refusal;
}

/** OPTIONS and operations without a cost need no caller and no charge. */
export function isFree({ operation }: RequestContext): boolean {
  return operation === undefined || operation.cost === 0;
}

function unlessFree(stage: Stage): Stage {
  return (request, shared) => (isFree(request) ? undefined : stage(request, shared));
}

/** A public operation ignores credentials, so an invalid one cannot make it fail. */
function isPublic({ operation }: RequestContext): boolean {
  return operation?.access === 'public';
}

function identifyCaller(request: RequestContext, dependencies: DecisionDependencies) {
  if (isPublic(request)) return undefined;
  return andThenWith(identify(dependencies, request), noteIdentified, request);
}

function noteIdentified(identified: Identified | RefusedToken | Refusal, request: RequestContext) {
  if (identified instanceof Refusal) return identified;
  if ('refusal' in identified) {
    request.tokenFault = identified.fault;
    request.revokedToken = identified.token;
    return identified.refusal;
  }
  request.identified = identified;
  return undefined;
}

function authoriseCaller(request: RequestContext) {
  if (isPublic(request)) {
    const address = request.clientNetwork;
    request.publicClient = { address, hashTag: address };
    return undefined;
  }
  const { operation, identified, source } = request;
  if (identified === undefined || operation === undefined) throw new TypeError('a stage was skipped');
  const { principal, directory } = identified;
  const named = source.field('x-service-account');
  const last = source.peer && LastPayer.of(source.peer);
  return andThenWith(authorise(directory, principal, operation, named, last), noteCaller, request);
}

function noteCaller(caller: Caller | Refusal, request: RequestContext) {
  if (caller instanceof Refusal) return caller;
  request.caller = caller;
  return undefined;
}

/** After the caller is authorised, so that only callers themselves find out that they are blocked. */
function refuseBlockedCaller(request: RequestContext, { blocks }: DecisionDependencies) {
  const { caller, operation } = request;
  if (blocks.isEmpty || caller === undefined || operation === undefined) return undefined;
  const denied = blockedCaller(blocks, caller, operation.cost);
  if (denied === undefined) return undefined;
  request.charged = denied;
  return denied.refusal;
}

function chargePoints(request: RequestContext, dependencies: DecisionDependencies) {
  const { operation, caller, publicClient } = request;
  const payer = caller ?? publicClient;
  if (operation === undefined || payer === undefined) throw new TypeError('a stage was skipped');
  request.chargeAskedMs = performance.now();
  return andThenWith(charge(request, payer, operation, dependencies), noteCharged, request);
}

function noteCharged(charged: Charged | Refusal, request: RequestContext) {
  if (charged instanceof Refusal) {
    // The store was not asked: the request is as finished as any other that is refused.
    request.chargeAskedMs = undefined;
    return charged;
  }
  request.chargeMs = performance.now() - (request.chargeAskedMs ?? 0);
  request.charged = charged;
  return charged.outcome === 'denied' ? charged.refusal : undefined;
}

function refuseUncounted({ charged }: RequestContext, { onStoreFailure }: DecisionDependencies) {
  return charged?.outcome === 'uncounted' && onStoreFailure === 'reject' ? UNCOUNTED : undefined;
}

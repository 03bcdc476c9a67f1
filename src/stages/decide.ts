import { type Awaitable, andThenWith } from '../domain/awaitable.ts';
import type { Caller } from '../domain/caller.ts';
import { Refusal, UNCOUNTED } from '../domain/problems.ts';
import type { Blocks } from '../facts/blocks.ts';
import type { Store } from '../store/store.ts';
import { authorise } from './authorise.ts';
import { blockedAddress, blockedCaller } from './block.ts';
import type { Buckets } from './buckets/buckets.ts';
import { type ChargeAsker, charge } from './charge.ts';
import { type Identified, identify, type Presented, type RefusedToken, type Verifiers } from './identify.ts';
import type { OperationTable } from './match.ts';
import type { Charged, Findings, Target } from './request-context.ts';
import { runStages, type Stage } from './stages.ts';

/** What `decide` depends on. Operations, identities and limits can be replaced while the gateway runs. */
export interface DecisionDependencies extends Verifiers {
  readonly operations: OperationTable;
  readonly buckets: Buckets;
  readonly store: Store;
  readonly blocks: Blocks;
  /** Whether a request that the store could not count is served or rejected. With `share`, the store of this gateway limits it. */
  readonly onStoreFailure: 'serve' | 'reject' | 'share';
}

/** A request as `decide` sees it, independent of the transport, with the results of its stages. */
export interface DecidedRequest extends Findings, Presented, ChargeAsker {
  readonly method: string;
  /** The canonical target, as `normalise` gives it. */
  target?: Target | undefined;
  identified?: Identified | undefined;
  /** Points, in place of the operation's own. */
  readonly askedCost?: number | undefined;
  /** Called right before the charge. Returns why nothing should be spent, such as a client that has disconnected. */
  cancelled(): Refusal | undefined;
}

type DecisionStage = Stage<DecidedRequest, DecisionDependencies>;

/** The stages that find out who calls, and for which Account. The request has its operation. */
export const CALLER_STAGES: readonly DecisionStage[] = [identifyCaller, authoriseCaller, refuseBlocked];

/** The stages that need no HTTP, in their order. */
export const DECISION_STAGES: readonly DecisionStage[] = [
  matchOperation,
  ...CALLER_STAGES.map(unlessFree),
  chargePoints,
  refuseUncounted,
];

/**
 * Returns why a request may not pass, or undefined if it may. Finds the operation, the caller and the target Account, and
 * spends the points; each result is written to the request. Synchronous if every stage is.
 */
export function decide(
  request: DecidedRequest,
  dependencies: DecisionDependencies,
): Awaitable<Refusal | undefined> {
  return runStages(DECISION_STAGES, request, dependencies);
}

/** @throws TypeError if the target has not been normalised */
export function targetOf({ target }: { readonly target?: Target | undefined }): Target {
  if (target === undefined) throw new TypeError('the request has not been normalised');
  return target;
}

function matchOperation(request: DecidedRequest, { operations, blocks }: DecisionDependencies) {
  const { path, folded } = targetOf(request);
  const operation = operations.find(request.method, path, folded);
  if (operation instanceof Refusal) return operation;
  const { askedCost } = request;
  if (operation !== 'free') {
    request.operation = askedCost === undefined ? operation : { ...operation, cost: askedCost };
  }
  const cost = request.operation?.cost ?? 0;
  return refuseAddress(request, blocks, cost);
}

/** What is free is refused as well, and a token is not even looked at. */
export function refuseAddress(request: DecidedRequest, blocks: Blocks, cost: number): Refusal | undefined {
  if (blocks.isEmpty) return undefined;
  const address = request.clientNetwork;
  request.charged = blockedAddress(blocks, address, cost);
  if (request.charged === undefined) return undefined;
  request.publicClient = { address, hashTag: address };
  return request.charged.refusal;
}

/** OPTIONS and operations without a cost need no caller and no charge. */
function isFree({ operation }: DecidedRequest): boolean {
  return operation === undefined || operation.cost === 0;
}

function unlessFree(stage: DecisionStage): DecisionStage {
  return (request, shared) => (isFree(request) ? undefined : stage(request, shared));
}

/** A public operation ignores credentials, so an invalid one cannot make it fail. */
function isPublic({ operation }: DecidedRequest): boolean {
  return operation?.access === 'public';
}

function identifyCaller(request: DecidedRequest, dependencies: DecisionDependencies) {
  if (isPublic(request)) return undefined;
  return andThenWith(identify(dependencies, request), noteIdentified, request);
}

function noteIdentified(identified: Identified | RefusedToken | Refusal, request: DecidedRequest) {
  if (identified instanceof Refusal) return identified;
  if ('refusal' in identified) {
    request.revokedToken = identified.token;
    return identified.refusal;
  }
  request.identified = identified;
  return undefined;
}

function authoriseCaller(request: DecidedRequest) {
  if (isPublic(request)) {
    const address = request.clientNetwork;
    request.publicClient = { address, hashTag: address };
    return undefined;
  }
  const { operation, identified } = request;
  if (identified === undefined || operation === undefined) throw new TypeError('a stage was skipped');
  const { principal, directory } = identified;
  const named = request.field('x-service-account');
  return andThenWith(
    authorise(directory, principal, operation, named, request.lastPayer),
    noteCaller,
    request,
  );
}

function noteCaller(caller: Caller | Refusal, request: DecidedRequest) {
  if (caller instanceof Refusal) return caller;
  request.caller = caller;
  return undefined;
}

/** After the caller is authorised, so that nobody finds out what is blocked besides who is. */
function refuseBlocked(request: DecidedRequest, { blocks }: DecisionDependencies) {
  const { caller, operation } = request;
  if (caller === undefined || operation === undefined) return undefined;
  const denied = blockedCaller(blocks, caller, operation.cost);
  if (denied === undefined) return undefined;
  request.charged = denied;
  return denied.refusal;
}

function chargePoints(request: DecidedRequest, { store, buckets }: DecisionDependencies) {
  if (isFree(request)) return undefined;
  const { operation, caller, publicClient } = request;
  const payer = caller ?? publicClient;
  if (operation === undefined || payer === undefined) throw new TypeError('a stage was skipped');
  const cancelled = request.cancelled();
  if (cancelled !== undefined) return cancelled;
  request.chargeAskedMs = performance.now();
  return andThenWith(charge(store, buckets, payer, operation, request), noteCharged, request);
}

function noteCharged(charged: Charged, request: DecidedRequest) {
  request.chargeMs = performance.now() - (request.chargeAskedMs ?? 0);
  request.charged = charged;
  return charged.outcome === 'denied' ? charged.refusal : undefined;
}

function refuseUncounted({ charged }: DecidedRequest, { onStoreFailure }: DecisionDependencies) {
  return charged?.outcome === 'uncounted' && onStoreFailure === 'reject' ? UNCOUNTED : undefined;
}

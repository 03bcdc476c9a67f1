import { type Awaitable, andThen } from '../domain/awaitable.ts';
import type { Store } from '../store/store.ts';
import { authorise } from './authorise.ts';
import type { Buckets } from './buckets.ts';
import { charge } from './charge.ts';
import { type Identified, identify, type Presented, type Verifiers } from './identify.ts';
import type { OperationTable } from './match.ts';
import { Refusal, UNCOUNTED } from './problems.ts';
import type { Findings } from './request-context.ts';
import { runStages, type Stage } from './stages.ts';

/** What `decide` depends on. Operations, identities and limits can be replaced while the gateway runs. */
export interface DecisionDependencies extends Verifiers {
  readonly operations: OperationTable;
  readonly buckets: Buckets;
  readonly store: Store;
  /** Whether a request that the store could not count is served or rejected. */
  readonly onStoreFailure: 'serve' | 'reject';
}

/** A request as `decide` sees it, independent of the transport. */
export interface Question extends Presented {
  readonly method: string;
  /** Canonical, as `normalise` gives it. */
  readonly path: string;
  /** The X-Service-Account header. */
  readonly namedAccount: string | undefined;
  /** Called right before the charge. Returns why nothing should be spent, such as a client that has disconnected. */
  readonly cancelled?: () => Refusal | undefined;
}

interface State {
  readonly question: Question;
  readonly findings: Findings;
  readonly dependencies: DecisionDependencies;
  identified?: Identified;
}

/** The stages that need no HTTP, in their order. */
const STAGES: readonly Stage<State>[] = [matchOperation, identifyCaller, authoriseCaller, chargePoints];

/**
 * Returns why a request may not pass, or undefined if it may. Finds the operation, the caller and the target Account, and
 * spends the points; each result is written to `findings`. Synchronous if every stage is.
 */
export function decide(
  question: Question,
  findings: Findings,
  dependencies: DecisionDependencies,
): Awaitable<Refusal | undefined> {
  return runStages(STAGES, { question, findings, dependencies });
}

function matchOperation({ question, findings, dependencies }: State) {
  const operation = dependencies.operations.find(question.method, question.path);
  if (operation instanceof Refusal) return operation;
  if (operation === 'free') return 'done';
  findings.operation = operation;
  return operation.cost === 0 ? 'done' : undefined;
}

/** A public operation ignores credentials, so an invalid one cannot make it fail. */
function isPublic({ findings }: State): boolean {
  return findings.operation?.access === 'public';
}

function identifyCaller(state: State) {
  if (isPublic(state)) return undefined;
  return andThen(identify(state.dependencies, state.question), (identified) => {
    if (identified instanceof Refusal) return identified;
    state.identified = identified;
    return undefined;
  });
}

function authoriseCaller(state: State) {
  const { question, findings, identified } = state;
  if (isPublic(state)) {
    const address = question.client();
    findings.publicClient = { address, hashTag: address };
    return undefined;
  }
  const { operation } = findings;
  if (identified === undefined || operation === undefined) throw new TypeError('a stage was skipped');
  const { principal, directory } = identified;
  return andThen(authorise(directory, principal, operation, question.namedAccount), (caller) => {
    if (caller instanceof Refusal) return caller;
    findings.caller = caller;
    return undefined;
  });
}

function chargePoints({ question, findings, dependencies }: State) {
  const { operation, caller, publicClient } = findings;
  const payer = caller ?? publicClient;
  if (operation === undefined || payer === undefined) throw new TypeError('a stage was skipped');
  const cancelled = question.cancelled?.();
  if (cancelled !== undefined) return cancelled;
  const { store, buckets, onStoreFailure } = dependencies;
  const askedMs = performance.now();
  findings.chargeAskedMs = askedMs;
  return andThen(charge(store, buckets, payer, operation), (charged) => {
    findings.chargeMs = performance.now() - askedMs;
    findings.charged = charged;
    if (charged.outcome === 'denied') return charged.refusal;
    return charged.outcome === 'uncounted' && onStoreFailure === 'reject' ? UNCOUNTED : undefined;
  });
}

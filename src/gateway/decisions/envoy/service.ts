import { status } from '@grpc/grpc-js';
import type { Logger } from 'pino';
import { type Awaitable, andThen } from '../../../domain/awaitable.ts';
import type { DescriptorLimit, DescriptorRules } from '../../../domain/limits/descriptors.ts';
import { NEAR_LIMIT_SHARE } from '../../../domain/limits/rows.ts';
import { UNCOUNTED } from '../../../domain/problems.ts';
import type { ListenSettings } from '../../../http/server/server.ts';
import type { PortTls } from '../../../http/server/tls.ts';
import type { DescriptorObserver, LimitOutcome } from '../../../observe/metrics/metrics.ts';
import type { DecisionDependencies } from '../../../stages/decide.ts';
import type { BucketState, Store } from '../../../store/store.ts';
import { type Decided, decidePlan, hasNoRoom } from './decide-plan.ts';
import { answerOf, type HeaderForm } from './envoy-answer.ts';
import type { RateLimitRequest, RateLimitResponse } from './messages.ts';
import { InvalidRequest } from './override.ts';
import { type Plan, planOf } from './plan.ts';

/** What the service and its port depend on. */
export interface EnvoyDependencies {
  readonly store: Store;
  readonly onStoreFailure: DecisionDependencies['onStoreFailure'];
  readonly observer: DescriptorObserver;
  readonly log: Logger;
  readonly listen: ListenSettings;
  /** TLS of this port; undefined to serve without. */
  readonly tls: PortTls | undefined;
  /** The rules in force. */
  rules(): DescriptorRules;
  isDraining(): boolean;
}

/** An answer that is not a decision. */
export interface CallError {
  readonly code: status;
  readonly details: string;
}

/** ShouldRateLimit. Synchronous if the store is. */
export class RateLimitService {
  readonly #dependencies: EnvoyDependencies;
  readonly #headers: HeaderForm;
  readonly #keyPrefix: string;

  constructor(dependencies: EnvoyDependencies, headers: HeaderForm, keyPrefix: string) {
    this.#dependencies = dependencies;
    this.#headers = headers;
    this.#keyPrefix = keyPrefix;
  }

  decide(request: RateLimitRequest): Awaitable<RateLimitResponse | CallError> {
    const startMs = performance.now();
    const { store, observer, rules } = this.#dependencies;
    let plan: Plan;
    try {
      plan = planOf(request, rules().get(request.domain), this.#keyPrefix);
    } catch (error) {
      if (!(error instanceof InvalidRequest)) throw error;
      observer.descriptorsDecided('invalid', performance.now() - startMs);
      return { code: status.INVALID_ARGUMENT, details: error.message };
    }
    return andThen(decidePlan(store, plan), (decided) => {
      observer.descriptorsDecided(outcomeOf(decided), performance.now() - startMs);
      this.#count(plan, decided);
      const isRefused = decided.degraded !== undefined && !decided.isOverLimit;
      if (isRefused && this.#dependencies.onStoreFailure === 'reject')
        return { code: status.UNAVAILABLE, details: UNCOUNTED.detail };
      return answerOf(plan, decided, this.#headers);
    });
  }

  #count({ domain, descriptors, buckets }: Plan, { states }: Decided): void {
    const { observer } = this.#dependencies;
    for (const one of descriptors)
      if (one.kind === 'banned') observer.descriptorLimited(domain, one.limit.label, overOutcome(one.limit));
    for (const [index, { rule, hits }] of buckets.entries()) {
      const state = states[index];
      if (hits < 0) observer.descriptorLimited(domain, rule.label, 'refunded');
      else if (state !== undefined) observer.descriptorLimited(domain, rule.label, limitOutcome(rule, state));
    }
  }
}

function limitOutcome(rule: DescriptorLimit, state: BucketState): LimitOutcome {
  if (hasNoRoom(state)) return overOutcome(rule);
  return state.remaining < rule.requestsPerUnit * NEAR_LIMIT_SHARE ? 'near' : 'within';
}

function overOutcome({ mode }: DescriptorLimit): LimitOutcome {
  return mode === 'shadow' ? 'shadow_over' : 'over';
}

function outcomeOf({ isOverLimit, degraded }: Decided) {
  if (isOverLimit) return 'denied';
  return degraded === undefined ? 'admitted' : 'uncounted';
}

import { US_PER_SECOND } from '../../../domain/clock.ts';
import { problemValue } from '../../../domain/problems.ts';
import { addGatewayFields, isDegraded } from '../../../stages/respond.ts';
import type { BucketCharge, BucketState } from '../../../store/store.ts';
import type { AskedRequest } from './asked-request.ts';

/** The answer to a question, as JSON has it. docs/decide.openapi.yaml describes it. */
export function answerOf(asked: AskedRequest, baseUrl: string) {
  const { refusal, requestId, caller, operation } = asked;
  const headers: Record<string, string> = { ...refusal?.headers };
  const addOwn = (name: string, value: string) => {
    headers[name] = value;
  };
  addGatewayFields({ addOwn }, asked);
  return {
    allowed: refusal === undefined,
    status: refusal?.status ?? 200,
    requestId,
    account: caller?.account ?? null,
    organization: caller?.organization ?? null,
    principal: caller?.principal.id ?? null,
    principalType: caller?.principal.type ?? null,
    operation: operation?.id ?? null,
    cost: operation?.cost ?? null,
    degraded: isDegraded(asked),
    retryAfterSeconds: Number(refusal?.headers?.['Retry-After'] ?? 0),
    buckets: bucketsOf(asked),
    headers,
    ...(refusal === undefined ? {} : { problem: problemValue(refusal, requestId, baseUrl) }),
  };
}

/** The buckets that were decided on, without the buckets of shadow limits. */
function bucketsOf({ due, decision }: AskedRequest) {
  if (due === undefined || decision === undefined || decision.outcome === 'uncounted') return [];
  // A part of a limit is not the bucket's state.
  if (decision.outcome === 'denied' && decision.degraded !== undefined) return [];
  return due.buckets.flatMap((bucket, index) => {
    const state = decision.buckets[index];
    if (state === undefined || bucket.shadow === true) return [];
    return [bucketAnswer(bucket.name, bucket, state)];
  });
}

/** A bucket and its state, as JSON has it. No copy: Node 20 would make a hidden class for each. */
export function bucketAnswer(
  name: string,
  { limit, windowSeconds }: Pick<BucketCharge, 'limit' | 'windowSeconds'>,
  { remaining, resetAfterUs }: Pick<BucketState, 'remaining' | 'resetAfterUs'>,
) {
  return { bucket: name, limit, windowSeconds, remaining, resetAfterSeconds: resetAfterUs / US_PER_SECOND };
}

import { US_PER_SECOND } from '../../../domain/clock.ts';
import { type DescriptorLimit, UNIT_SECONDS } from '../../../domain/limits/descriptors.ts';
import { policyText, rateLimitFields } from '../../../stages/buckets/rate-limit-fields.ts';
import type { BucketState } from '../../../store/store.ts';
import { type Decided, hasNoRoom } from './decide-plan.ts';
import {
  type DescriptorStatus,
  type HeaderValue,
  OK,
  OVER_LIMIT,
  type RateLimitResponse,
  type Struct,
  type StructValue,
} from './messages.ts';
import { UNIT_NUMBERS } from './override.ts';
import type { DescriptorPlan, LimitedBucket, Plan } from './plan.ts';

export type HeaderForm = 'draft' | 'legacy' | 'none';

/** What an unlimited descriptor has left: the largest number of the field. */
const WITHOUT_END = 0xffff_ffff;

const HAS_ROOM: DescriptorStatus = { code: OK };
const IS_UNLIMITED: DescriptorStatus = { code: OK, limitRemaining: WITHOUT_END };
const DEGRADED: HeaderValue = { key: 'Service-RateLimit-Mode', value: 'degraded' };

export function answerOf(plan: Plan, decided: Decided, form: HeaderForm): RateLimitResponse {
  const { isOverLimit, degraded } = decided;
  const headers = headersOf(plan, decided, form);
  if (degraded !== undefined) headers.push(DEGRADED);
  return {
    overallCode: isOverLimit ? OVER_LIMIT : OK,
    statuses: plan.descriptors.map((one) => statusOf(one, plan, decided)),
    responseHeadersToAdd: headers,
    dynamicMetadata: metadataOf(plan, decided),
  };
}

function statusOf(one: DescriptorPlan, { buckets }: Plan, { states }: Decided): DescriptorStatus {
  if (one.kind === 'none') return HAS_ROOM;
  if (one.kind === 'unlimited') return IS_UNLIMITED;
  if (one.kind === 'banned') {
    const { limit } = one;
    const durationUntilReset = { seconds: limit.windowSeconds };
    return {
      code: codeOf(limit, true),
      currentLimit: currentLimit(limit),
      limitRemaining: 0,
      durationUntilReset,
    };
  }
  const bucket = buckets[one.bucket];
  const state = states[one.bucket];
  if (bucket === undefined || state === undefined) return HAS_ROOM;
  const isFull = hasNoRoom(state);
  return {
    code: codeOf(bucket.rule, isFull),
    currentLimit: currentLimit(bucket.rule),
    limitRemaining: state.remaining,
    durationUntilReset: { seconds: secondsUntil(isFull ? state.retryAfterUs : state.resetAfterUs) },
  };
}

function codeOf({ mode }: DescriptorLimit, isFull: boolean): DescriptorStatus['code'] {
  return isFull && mode !== 'shadow' ? OVER_LIMIT : OK;
}

function currentLimit({ requestsPerUnit, unit, windowSeconds, name }: DescriptorLimit) {
  const multiplier = windowSeconds / UNIT_SECONDS[unit];
  const unitMultiplier = multiplier === 1 ? undefined : { value: multiplier };
  return { requestsPerUnit, unit: UNIT_NUMBERS[unit], name, unitMultiplier };
}

/** Rounded up, so that a client that waits for this time is not too early. */
function secondsUntil(us: number): number {
  return Math.ceil(us / US_PER_SECOND);
}

function headersOf(plan: Plan, decided: Decided, form: HeaderForm): HeaderValue[] {
  if (form === 'none') return [];
  return form === 'draft' ? draftHeaders(plan, decided) : legacyHeaders(plan, decided);
}

/** The limits that can refuse a request, in the form that the gateway uses for its own limits. */
function draftHeaders({ buckets }: Plan, { isOverLimit, states }: Decided): HeaderValue[] {
  const policyItems = buckets.filter(({ shadow }) => !shadow);
  const wait = isOverLimit ? retryAfter(buckets, states) : [];
  // Limits in quota mode refuse together, and none is a policy.
  if (policyItems.length === 0) return wait;
  const due = { buckets, policyItems, policy: policyText(policyItems) };
  const { policy, rateLimit } = rateLimitFields(due, states);
  const headers = [{ key: 'RateLimit-Policy', value: policy }];
  if (rateLimit !== '') headers.push({ key: 'RateLimit', value: rateLimit });
  return [...headers, ...wait];
}

/** When the request fits all limits that refuse it; nothing where that is not known. */
function retryAfter(buckets: readonly LimitedBucket[], states: Decided['states']): HeaderValue[] {
  const waitsUs = states.map((state, index) =>
    buckets[index]?.rule.mode === 'shadow' ? 0 : (state?.retryAfterUs ?? 0),
  );
  const seconds = secondsUntil(Math.max(0, ...waitsUs));
  return seconds === 0 ? [] : [{ key: 'Retry-After', value: `${seconds}` }];
}

/** The limit that is nearest to refusing, as envoyproxy/ratelimit describes it. */
function legacyHeaders({ buckets, descriptors }: Plan, { states }: Decided): HeaderValue[] {
  const banned = descriptors.find((one) => one.kind === 'banned' && one.limit.mode === 'enforced');
  if (banned?.kind === 'banned') return legacyFields(0, 0, banned.limit.windowSeconds);
  let nearest: { readonly bucket: LimitedBucket; readonly state: BucketState } | undefined;
  for (const [index, bucket] of buckets.entries()) {
    const state = states[index];
    if (state === undefined || bucket.shadow) continue;
    if (nearest === undefined || rankOf(state) < rankOf(nearest.state)) nearest = { bucket, state };
  }
  if (nearest === undefined) return [];
  const { bucket, state } = nearest;
  const resetUs = hasNoRoom(state) ? state.retryAfterUs : state.resetAfterUs;
  return legacyFields(bucket.limit, state.remaining, secondsUntil(resetUs));
}

function legacyFields(limit: number, remaining: number, resetSeconds: number): HeaderValue[] {
  return [
    { key: 'RateLimit-Limit', value: `${limit}` },
    { key: 'RateLimit-Remaining', value: `${remaining}` },
    { key: 'RateLimit-Reset', value: `${resetSeconds}` },
  ];
}

/** Lower for a limit without room, and then for what has least left. */
function rankOf(state: BucketState): number {
  return hasNoRoom(state) ? -1 : state.remaining;
}

/** The metadata of the rules that have room, and why a request was refused or not counted; undefined if there is none of it. */
function metadataOf(
  { domain, descriptors, buckets }: Plan,
  { isOverLimit, states, degraded }: Decided,
): Struct | undefined {
  const passed = descriptors.flatMap((one) =>
    one.kind === 'counted' && one.metadata !== undefined && !hasNoRoom(states[one.bucket])
      ? [one.metadata]
      : [],
  );
  if (!isOverLimit && passed.length === 0 && degraded === undefined) return undefined;
  const refusing = isOverLimit ? refusingLimits(descriptors, buckets, states) : [];
  const metadata: object = Object.assign({}, ...passed.reverse());
  return structOf({
    domain,
    ...(passed.length > 0 && { metadata }),
    ...(refusing.length > 0 && { overLimit: refusing }),
    ...(degraded !== undefined && { degraded }),
  });
}

function refusingLimits(
  descriptors: readonly DescriptorPlan[],
  buckets: readonly LimitedBucket[],
  states: Decided['states'],
): readonly string[] {
  return descriptors.flatMap((one) => {
    const rule = ruleWithoutRoom(one, buckets, states);
    return rule === undefined || rule.mode === 'shadow' ? [] : [rule.label];
  });
}

function ruleWithoutRoom(
  one: DescriptorPlan,
  buckets: readonly LimitedBucket[],
  states: Decided['states'],
): DescriptorLimit | undefined {
  if (one.kind === 'banned') return one.limit;
  return one.kind === 'counted' && hasNoRoom(states[one.bucket]) ? buckets[one.bucket]?.rule : undefined;
}

function structOf(value: object): Struct {
  return {
    fields: Object.fromEntries(Object.entries(value).map(([name, one]) => [name, structValueOf(one)])),
  };
}

function structValueOf(value: unknown): StructValue {
  if (typeof value === 'string') return { stringValue: value };
  if (typeof value === 'number') return { numberValue: value };
  if (typeof value === 'boolean') return { boolValue: value };
  if (Array.isArray(value)) return { listValue: { values: value.map(structValueOf) } };
  return typeof value === 'object' && value !== null ? { structValue: structOf(value) } : { nullValue: 0 };
}

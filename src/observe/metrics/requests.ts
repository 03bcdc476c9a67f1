import type { Registry } from 'prom-client';
import { CONTRACT_ROWS, contractScopes, KINDS } from '../../domain/limits/rows.ts';
import type { Access, OperationKind } from '../../domain/operation.ts';
import { PROBLEM_CODES } from '../../domain/problems.ts';
import { BLOCKED } from '../../facts/blocks.ts';
import { METHODS } from '../../stages/match.ts';
import { PROTOCOLS, READERS, type RequestContext } from '../../stages/request-context.ts';
import { isDegraded } from '../../stages/respond.ts';
import { UNCOUNTED_REASONS } from '../../store/store.ts';
import type { GatewayObserver } from '../gateway-observer.ts';
import { PlainHistogram, SECONDS } from './histogram.ts';
import { counter } from './register.ts';
import { responseCounter } from './responses.ts';
import { Tally } from './tally.ts';
import { tunnelMetrics } from './tunnels.ts';

/** What this process has counted since it started. */
export interface RequestTotals {
  readonly requests: number;
  readonly points: number;
  /** Requests answered with 429. */
  readonly refused: number;
  /** Requests served without being counted. */
  readonly degraded: number;
  /** Requests answered with the gateway's own 503. */
  readonly failed: number;
  /** Requests by duration, in the buckets of `SECONDS`. */
  readonly durations: readonly number[];
}

export interface RequestMetrics extends GatewayObserver {
  requestTotals(): RequestTotals;
}

/** Metrics of requests: outcomes, points and durations. */
export function requestMetrics(registry: Registry): RequestMetrics {
  const { countCharge, countPlan, points, degraded } = chargeCounters(registry);
  const countResponse = responseCounter(registry);
  const { observeTimes, durations } = timeHistograms(registry);
  const requests = new Tally(registry, {
    name: 'weir_requests_total',
    help: 'Requests, by kind of operation, bucket (for a 429, the one that refused it) and outcome.',
    labelNames: ['kind', 'bucket', 'outcome'],
    known: knownOutcomes(),
  });
  const unlisted = counter(
    registry,
    'weir_unlisted_operations_total',
    'Requests that match no listed operation, by method.',
    { method: METHODS.filter((method) => method !== 'OPTIONS') },
  );
  const readers = new Tally(registry, {
    name: 'weir_requests_read_total',
    help: "Requests of connections, by what read them: the edge, or for those that are not plain Node's server, at a higher cost.",
    labelNames: ['reader'],
    known: READERS.map((reader) => [reader]),
  });
  const decisions = new Tally(registry, {
    name: 'weir_decisions_total',
    help: 'Requests of weir_requests_total that another proxy asked about, by its protocol and the outcome.',
    labelNames: ['protocol', 'outcome'],
    known: PROTOCOLS.flatMap((protocol) => [
      [protocol, 'admitted'],
      [protocol, 'denied'],
    ]),
  });
  const { countTunnelEnd, ...tunnels } = tunnelMetrics(registry);
  return {
    ...tunnels,
    unlistedOperation: (method) => unlisted.inc({ method }),
    requestFinished(context, status, totalMs) {
      const kind = context.operation?.kind ?? 'none';
      const outcome = outcomeOf(context);
      requests.add(1, kind, bucketOf(context), outcome);
      if (context.reader !== undefined) readers.add(1, context.reader);
      if (context.protocol !== undefined) decisions.add(1, context.protocol, outcome);
      countCharge(context, kind);
      countPlan(context);
      countResponse(context, status);
      countTunnelEnd(context);
      observeTimes(context, totalMs);
    },
    requestTotals: () => ({
      requests: requests.sum(),
      points: points.sum(),
      refused: requests.sum(({ outcome }) => outcome === 'denied'),
      degraded: degraded.sum(),
      failed: requests.sum(({ outcome }) => outcome === 'ServiceUnavailable'),
      durations: durations(),
    }),
  };
}

function chargeCounters(registry: Registry) {
  const points = new Tally(registry, {
    name: 'weir_points_charged_total',
    help: 'Points charged to Accounts, Persons and addresses. Points that are also charged to an Organization are counted once.',
    labelNames: ['kind'],
    known: KINDS.map((kind) => [kind]),
  });
  const degraded = new Tally(registry, {
    name: 'weir_degraded_total',
    help: 'Requests served without being counted, by reason.',
    labelNames: ['reason'],
    known: UNCOUNTED_REASONS.map((reason) => [reason]),
  });
  const refusedInPart = new Tally(registry, {
    name: 'weir_degraded_denied_total',
    help: "Requests refused by this replica's part of a limit, because the store did not answer, by reason.",
    labelNames: ['reason'],
    known: UNCOUNTED_REASONS.map((reason) => [reason]),
  });
  const byBucket = { bucket: CONTRACT_ROWS.map(({ name }) => name) };
  const shadowDenied = counter(
    registry,
    'weir_shadow_denied_total',
    'Admitted requests that a shadow limit would have refused, by bucket.',
    byBucket,
  );
  const nearLimit = counter(
    registry,
    'weir_near_limit_total',
    'Admitted requests that left less than a tenth of the limit in their bucket, by bucket.',
    byBucket,
  );
  const unknownPlans = counter(
    registry,
    'weir_unknown_plans_total',
    'Charged requests whose token or directory names a plan that the limits do not have.',
  );
  const countPlan = ({ charged }: RequestContext): void => {
    if (charged?.unknownPlan !== undefined) unknownPlans.inc();
  };
  const countDegraded = (charged: RequestContext['charged']): void => {
    if (charged?.outcome === 'uncounted') degraded.add(1, charged.reason);
    else if (charged?.outcome === 'denied') refusedInPart.add(1, charged.degraded ?? 'error');
  };
  const countCharge = (context: RequestContext, kind: OperationKind | 'none'): void => {
    const { operation, charged } = context;
    if (isDegraded(context)) countDegraded(charged);
    if (charged?.outcome !== 'admitted') return;
    points.add(operation?.cost ?? 0, kind);
    for (const { bucket } of charged.nearLimit ?? []) nearLimit.inc({ bucket });
    for (const bucket of charged.shadowDenied ?? []) shadowDenied.inc({ bucket });
  };
  return { countCharge, countPlan, points, degraded };
}

function timeHistograms(registry: Registry) {
  const histogram = (name: string, help: string) =>
    new PlainHistogram(registry, { name, help, buckets: SECONDS });
  const charge = histogram('weir_charge_duration_seconds', 'Time to decide a charge, store included.');
  const upstream = histogram('weir_upstream_duration_seconds', "Time until the upstream's response headers.");
  const total = histogram(
    'weir_request_duration_seconds',
    'Time from request headers to the end of the response.',
  );
  const observeTimes = ({ chargeMs, upstreamMs }: RequestContext, totalMs: number): void => {
    total.observe(totalMs / 1000);
    if (chargeMs !== undefined) charge.observe(chargeMs / 1000);
    if (upstreamMs !== undefined) upstream.observe(upstreamMs / 1000);
  };
  return { observeTimes, durations: () => total.counts() };
}

const BLOCKED_KINDS = KINDS.map((kind) => ({ kind, name: BLOCKED }));

/** Every combination of kind, bucket and outcome that a request can have. */
function* knownOutcomes(): Generator<readonly [string, string, string]> {
  const codes = PROBLEM_CODES.filter((code) => code !== 'RateLimitExceeded');
  for (const code of codes) {
    for (const kind of ['none', ...KINDS]) yield [kind, 'none', code];
  }
  for (const kind of ['none', ...KINDS]) yield [kind, 'none', 'free'];
  for (const { kind, name } of [...CONTRACT_ROWS, ...BLOCKED_KINDS]) yield [kind, name, 'denied'];
  for (const kind of KINDS) {
    for (const access of ACCESSES) {
      const bucket = firstBucket(kind, access);
      for (const outcome of ['admitted', 'uncounted', ...AFTER_CHARGE]) yield [kind, bucket, outcome];
    }
  }
}

const ACCESSES = ['caller', 'person', 'public'] as const satisfies readonly Access[];

/** The refusals of a request that was already charged. */
const AFTER_CHARGE = ['BadRequest', 'PayloadTooLarge', 'ValidationError', 'ServiceUnavailable'];

/** The bucket that refused the request, otherwise the first bucket that the request was charged to. */
function bucketOf({ operation, charged }: RequestContext): string {
  if (charged?.outcome === 'denied') return charged.bucket;
  if (operation === undefined || charged === undefined) return 'none';
  return firstBucket(operation.kind, operation.access);
}

function outcomeOf({ charged, refusal }: RequestContext): string {
  if (refusal !== undefined && refusal.code !== 'RateLimitExceeded') return refusal.code;
  return charged?.outcome ?? 'free';
}

/** The contract's bucket of the Account, Person or address. */
function firstBucket(kind: OperationKind, access: Access): string {
  return `${contractScopes(access)[0]}-${kind}`;
}

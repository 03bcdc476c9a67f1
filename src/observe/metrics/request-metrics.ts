/** The values of labels that describe a request. None of them is taken from the request itself. */

import { CONTRACT_ROWS, CONTRACT_SCOPES, KINDS } from '../../domain/limits/rows.ts';
import type { Access, OperationKind } from '../../domain/operation.ts';
import { PROBLEM_CODES, QUEUE_TIMEOUT, TUNNELS_BUSY, UNCOUNTED } from '../../domain/problems.ts';
import { BLOCKED } from '../../facts/blocks.ts';
import { TUNNEL_IDLE } from '../../http/message/errors.ts';
import { payingAccess, type RequestContext, spentBy } from '../../stages/request-context.ts';
import { isDegraded } from '../../stages/respond.ts';
import type { GatewayObserver, UpstreamQueue } from '../gateway-observer.ts';
import type { MetricTable } from './metric-table.ts';

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
  /** Requests that this process has answered with 503 because they could not be counted: `store.onStoreFailure` is `reject`. */
  requestsRejected(): number;
  /** The upstreams that requests wait for now. */
  upstreamsInDemand(): readonly UpstreamQueue[];
}

/** Feeds the metrics of requests. */
export function requestMetrics(table: MetricTable): RequestMetrics {
  const requests = table.weir_requests_total;
  const { weir_requests_read_total: readers, weir_decisions_total: decisions } = table;
  const { weir_responses_total: responses, weir_tunnels: tunnels } = table;
  let queues: readonly UpstreamQueue[] = [];
  let rejected = 0;
  return {
    receipt: (event) => table.weir_receipts_total.add(1, event),
    heldEnded: (_, { kind }, points) => table.weir_points_charged_total.add(points, kind),
    unlistedOperation: (method) => table.weir_unlisted_operations_total.add(1, method),
    showUpstreams(upstreams) {
      queues = upstreams;
      const by = (read: (upstream: UpstreamQueue) => number) => () =>
        upstreams.map((upstream) => [upstream.prefix || '/', read(upstream)] as const);
      table.weir_upstream_queued(by(({ waiting }) => waiting));
      table.weir_upstream_concurrency_limit(by(({ limit }) => limit));
    },
    tunnelOpened: (traffic) => tunnels.inc({ traffic }),
    tunnelClosed: (traffic) => tunnels.dec({ traffic }),
    requestFinished(context, status, totalMs) {
      const { operation, reader, protocol, refusal, upstreamStatus } = context;
      const kind = operation?.kind ?? 'none';
      const outcome = outcomeOf(context);
      requests.add(1, kind, bucketOf(context), outcome);
      if (reader !== undefined) readers.add(1, reader);
      if (protocol !== undefined) decisions.add(1, protocol, outcome);
      const statusClass = statusClassOf(status);
      const source = refusal === undefined && upstreamStatus !== undefined ? 'upstream' : 'gateway';
      if (statusClass !== undefined) responses.add(1, source, statusClass);
      countCharge(table, context, kind);
      countUpstreamEnd(table, context);
      observeTimes(table, context, totalMs);
      if (refusal === UNCOUNTED) rejected += 1;
    },
    requestsRejected: () => rejected,
    upstreamsInDemand: () => queues.filter(({ waiting }) => waiting > 0),
    requestTotals: () => ({
      requests: requests.sum(),
      points: table.weir_points_charged_total.sum(),
      refused: requests.sum(({ outcome }) => outcome === 'denied'),
      degraded: table.weir_degraded_total.sum(),
      failed: requests.sum(({ outcome }) => outcome === 'ServiceUnavailable'),
      durations: table.weir_request_duration_seconds.counts(),
    }),
  };
}

function countCharge(table: MetricTable, context: RequestContext, kind: string): void {
  const { charged } = context;
  if (charged === undefined) return;
  if (charged.unknownPlan !== undefined) table.weir_unknown_plans_total.add(1);
  if (isDegraded(context)) countDegraded(table, charged);
  if (charged.outcome !== 'admitted') return;
  table.weir_points_charged_total.add(spentBy(context), kind);
  if (context.unsettled !== undefined) table.weir_unsettled_total.add(1, context.unsettled);
  for (const { bucket } of charged.nearLimit ?? []) table.weir_near_limit_total.add(1, bucket);
  for (const bucket of charged.shadowDenied ?? []) table.weir_shadow_denied_total.add(1, bucket);
}

function countDegraded(table: MetricTable, charged: NonNullable<RequestContext['charged']>): void {
  if (charged.outcome === 'uncounted') table.weir_degraded_total.add(1, charged.reason);
  else if (charged.outcome === 'denied') table.weir_degraded_denied_total.add(1, charged.degraded ?? 'error');
}

/** Counts a request that got no turn at the upstream, or whose tunnel was refused or closed. */
function countUpstreamEnd(table: MetricTable, { refusal, upstreamError }: RequestContext): void {
  if (refusal === QUEUE_TIMEOUT) table.weir_upstream_queue_timeouts_total.add(1);
  else if (refusal === TUNNELS_BUSY) table.weir_tunnels_refused_total.add(1);
  else if (upstreamError === TUNNEL_IDLE) table.weir_tunnels_idle_total.add(1);
}

function observeTimes(table: MetricTable, context: RequestContext, totalMs: number): void {
  const { chargeMs, queuedMs, upstreamMs } = context;
  table.weir_request_duration_seconds.observe(totalMs / 1000);
  if (chargeMs !== undefined) table.weir_charge_duration_seconds.observe(chargeMs / 1000);
  if (queuedMs !== undefined) table.weir_upstream_queue_seconds.observe(queuedMs / 1000);
  if (upstreamMs !== undefined) table.weir_upstream_duration_seconds.observe(upstreamMs / 1000);
}

/** A blocked address is refused OPTIONS and paths that do not exist, too. */
const BLOCKED_KINDS = ['none', ...KINDS].map((kind) => ({ kind, name: BLOCKED }));

const ACCESSES = ['caller', 'person', 'public'] as const satisfies readonly Access[];

const firstBuckets = (access: Access) => {
  const [scope] = CONTRACT_SCOPES[access];
  return { read: `${scope}-read`, write: `${scope}-write` };
};

/** The contract's bucket of the Account, Person or address. Constants, because each request is counted by them. */
const FIRST_BUCKETS: Readonly<Record<Access, Readonly<Record<OperationKind, string>>>> = {
  caller: firstBuckets('caller'),
  person: firstBuckets('person'),
  public: firstBuckets('public'),
};

/** The refusals of a request that was already charged. */
const AFTER_CHARGE = ['BadRequest', 'PayloadTooLarge', 'ValidationError', 'ServiceUnavailable'];

/** By the first digit of the status. */
const CLASSES = ['', '1xx', '2xx', '3xx', '4xx', '5xx'];

/** Every outcome that a request can have, the codes of refusals among them. */
export const OUTCOMES: readonly string[] = [
  ...['admitted', 'denied', 'uncounted', 'free'],
  ...PROBLEM_CODES.filter((code) => code !== 'RateLimitExceeded'),
];

/** Every combination of kind, bucket and outcome that a request can have. */
export function* knownOutcomes(): Generator<readonly [kind: string, bucket: string, outcome: string]> {
  const codes = PROBLEM_CODES.filter((code) => code !== 'RateLimitExceeded');
  for (const outcome of [...codes, 'free']) {
    for (const kind of ['none', ...KINDS]) yield [kind, 'none', outcome];
  }
  for (const { kind, name } of [...CONTRACT_ROWS, ...BLOCKED_KINDS]) yield [kind, name, 'denied'];
  for (const kind of KINDS) {
    for (const access of ACCESSES) {
      const bucket = FIRST_BUCKETS[access][kind];
      for (const outcome of ['admitted', 'uncounted', ...AFTER_CHARGE]) yield [kind, bucket, outcome];
    }
  }
}

/** The bucket that refused the request, otherwise the first bucket that the request was charged to. */
export function bucketOf({ operation, charged }: RequestContext): string {
  if (charged?.outcome === 'denied') return charged.bucket;
  if (operation === undefined || charged === undefined) return 'none';
  return FIRST_BUCKETS[payingAccess(operation)][operation.kind];
}

export function outcomeOf({ charged, refusal }: RequestContext): string {
  if (refusal !== undefined && refusal.code !== 'RateLimitExceeded') return refusal.code;
  return charged?.outcome ?? 'free';
}

/** Every combination of source and status class that a response can have. The gateway answers preflight requests and refusals. */
export function* knownResponses(): Generator<readonly [source: string, statusClass: string]> {
  for (const statusClass of CLASSES.slice(1)) yield ['upstream', statusClass];
  for (const statusClass of ['2xx', '4xx', '5xx']) yield ['gateway', statusClass];
}

/** Undefined if the client left before a response began. */
function statusClassOf(status: number): string | undefined {
  return CLASSES[Math.floor(status / 100)] || undefined;
}

import { CONTRACT_ROWS, KINDS } from '../../domain/limits/rows.ts';
import { RECEIPT_EVENTS, UNSETTLED_REASONS } from '../../domain/settlement/settlement.ts';
import { IGNORED_REASONS, SHARED_KINDS } from '../../facts/ignored.ts';
import { READERS } from '../../http/exchange.ts';
import { identificationsOf, providerOutcomesOf, providersOf } from '../../identity/identity-observer.ts';
import { METHODS } from '../../stages/match.ts';
import { PROTOCOLS } from '../../stages/request-context.ts';
import { DROPPED_REASONS, UNCOUNTED_REASONS } from '../../store/store.ts';
import { SECONDS } from './fast-metrics.ts';
import {
  counter,
  counterOf,
  gauge,
  histogram,
  histogramOf,
  type IdentitySections,
  reading,
} from './kinds.ts';
import type { Registry } from './prometheus-client.ts';
import { knownOutcomes, knownResponses, OUTCOMES } from './request-metrics.ts';

const BY_REASON = { reason: UNCOUNTED_REASONS };

/** Limits that the files add are shown once they are counted. */
const BY_BUCKET = { bucket: CONTRACT_ROWS.map(({ name }) => name) };

/** Histogram buckets in seconds, from a provider on the same network to one at its timeout. */
const PROVIDER_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

const FILES = ['limits', 'operations', 'identities', 'certificates', 'descriptors'] as const;

/** The label values of rules of the rate limit service that have no series of their own. */
export const OTHER_RULE = ['other', 'other'] as const;

/**
 * All metrics: name, kind, help, labels with the values that are shown from the start, and buckets. Events add to a `counter` or a
 * `histogram` and set a `gauge`. A `reading` is read at each scrape. No label is an Account, a token or a path.
 */
const METRICS = {
  weir_build_info: gauge('Always 1. The versions of Weir and of Node.', 'version', 'node'),

  weir_requests_total: counterOf(
    'Requests, by kind of operation, bucket (for a 429, the one that refused it) and outcome.',
    ['kind', 'bucket', 'outcome'],
    knownOutcomes,
  ),
  weir_responses_total: counterOf(
    "Responses to clients by status class: the gateway's own, and the upstreams'.",
    ['source', 'class'],
    knownResponses,
  ),
  weir_requests_read_total: counter(
    'Requests by reader: `edge` for plain requests, `node` for all others (slower).',
    { reader: READERS },
  ),
  weir_decisions_total: counter(
    'Requests of weir_requests_total that another proxy or a program asked about, by its protocol and the outcome.',
    { protocol: PROTOCOLS, outcome: OUTCOMES },
  ),
  weir_unlisted_operations_total: counter('Requests that match no listed operation, by method.', {
    method: METHODS.filter((method) => method !== 'OPTIONS'),
  }),
  weir_request_duration_seconds: histogram('Time from request headers to the end of the response.', SECONDS),
  weir_charge_duration_seconds: histogram('Time to decide a charge, store included.', SECONDS),
  weir_upstream_duration_seconds: histogram("Time until the upstream's response headers.", SECONDS),
  weir_upstream_queue_seconds: histogram(
    'Time that requests waited for their turn at an upstream. Those that did not wait are not counted.',
    SECONDS,
  ),
  weir_upstream_queue_timeouts_total: counter(
    'Requests that waited for upstream.queueTimeoutMs and then got a 503.',
  ),
  weir_upstream_queued: reading(
    'Requests that wait for their turn, by the path prefix of the upstream.',
    'upstream',
  ),
  weir_upstream_concurrency_limit: reading(
    'Most requests that may be at the upstream at once, by its path prefix.',
    'upstream',
  ),
  weir_requests_in_flight: reading(
    'Requests of this replica that hold a slot, by their limit on concurrent requests.',
    'bucket',
  ),

  weir_points_charged_total: counter(
    'Points charged to Accounts, Persons and addresses. Points that are also charged to an Organization are counted once.',
    { kind: KINDS },
  ),
  weir_unsettled_total: counter(
    'Requests that cost what they had reserved, because what they have cost in the end is unknown, by reason.',
    { reason: UNSETTLED_REASONS },
  ),
  weir_receipts_total: counter(
    'Decisions that programs wanted to hold, and settlements of them, by event. Those that were issued and not settled cost what they had reserved.',
    { event: RECEIPT_EVENTS },
  ),
  weir_degraded_total: counter('Requests served without being counted, by reason.', BY_REASON),
  weir_degraded_denied_total: counter(
    "Requests refused by this replica's part of a limit, because the store did not answer, by reason.",
    BY_REASON,
  ),
  weir_shadow_denied_total: counter(
    'Admitted requests that a shadow limit would have refused, by bucket.',
    BY_BUCKET,
  ),
  weir_near_limit_total: counter(
    'Admitted requests that left less than a tenth of the limit in their bucket, by bucket.',
    BY_BUCKET,
  ),
  weir_unknown_plans_total: counter(
    'Charged requests whose token or directory names a plan that the limits do not have.',
  ),

  weir_tunnels: gauge(
    'WebSocket connections that are open, by whose share of the upstream connections they use.',
    'traffic',
  ),
  weir_tunnels_refused_total: counter(
    'WebSocket connections refused because others used their whole share of the upstream connections.',
  ),
  weir_tunnels_idle_total: counter(
    'WebSocket connections closed because they carried nothing for upstream.tunnelIdleTimeoutMs.',
  ),

  weir_descriptor_decisions_total: counter("Requests to Envoy's rate limit service, by outcome.", {
    outcome: ['admitted', 'denied', 'uncounted', 'invalid'],
  }),
  weir_descriptor_limits_total: counter(
    'Limits that requests to the rate limit service were held against, by domain, rule and outcome.',
    {
      domain: [OTHER_RULE[0]],
      descriptor: [OTHER_RULE[1]],
      outcome: ['within', 'near', 'over', 'shadow_over', 'refunded'],
    },
  ),
  weir_descriptor_decision_duration_seconds: histogram(
    "Time from a request to Envoy's rate limit service to its answer.",
    SECONDS,
  ),

  weir_denials_remembered_total: counter('Denials answered from memory, without a store call.'),
  weir_points_uncounted_total: counter('Points of requests that could not be counted, by reason.', BY_REASON),
  weir_points_late_total: counter(
    'Points that the store counted only after the requests had been served uncounted.',
  ),
  weir_points_unanswered_total: counter(
    'Points of requests served uncounted because the connection to the store closed before its answer. The store may have counted them.',
  ),
  weir_settlements_total: counter(
    'Settlements of charges whose cost was known later, by outcome: applied, applied before, or after the end of their hold.',
    { outcome: ['settled', 'already', 'ended'] },
  ),
  weir_settled_over_points_total: counter(
    'Points that settlements added above a limit. If several limits were exceeded, the highest number counts.',
  ),
  weir_settlements_dropped_total: counter(
    'Settlements that were given up, so that the charge stays as it was, by reason.',
    { reason: DROPPED_REASONS },
  ),
  weir_store_connection_failures_total: counter('Failed connections to the store, by reason.', BY_REASON),
  weir_store_call_duration_seconds: histogram(
    'Duration of calls to the store that were answered before the deadline.',
    SECONDS,
  ),
  weir_store_call_decisions: histogram('Decisions per call to the store.', [1, 2, 4, 8, 16, 32, 64]),
  weir_store_setting_unsafe: gauge(
    'Redis settings that allow limits to be exceeded, read on connect and every 30 s: 1 unsafe, 0 safe.',
    'route',
    'setting',
  ),
  weir_store_breaker_state: gauge(
    'Circuit breaker of the store, or of each Cluster master: 0 closed, 1 half-open, 2 open.',
    'route',
  ),

  weir_journal_sums_total: counter('Sums that were written to the journal.'),
  weir_journal_failures_total: counter('Failed attempts to write the journal. Each is repeated.'),
  weir_journal_dropped_points_total: counter(
    'Points that are missing in the journal: too many sums waited, or PostgreSQL refuses their values.',
  ),
  weir_journal_lag_seconds: reading(
    'Age of the oldest count that is not in the journal. Missing without a journal.',
  ),
  weir_journal_recovering: reading(
    '1 while Redis lacks what durable limits have counted; 0 otherwise. Missing without a journal.',
  ),
  weir_journal_recoveries_total: counter('Recoveries of counts that Redis had lost, by this replica.'),
  weir_journal_put_back_points_total: counter('Points that this replica put back into Redis.'),
  weir_journal_recovery_failures_total: counter('Failed attempts to put counts back. Each is repeated.'),

  weir_shared_ignored_total: counter(
    'Messages, records and summaries in Redis that were ignored, by kind and reason.',
    { kind: SHARED_KINDS, reason: IGNORED_REASONS },
  ),
  weir_refusals_unfindable_total: counter(
    'Requests with a 429 that weir why cannot find, because a flood had more than Weir keeps.',
  ),
  weir_share_replicas: reading('Replicas that limits are divided by while the store does not answer.'),
  weir_share_replicas_age_seconds: reading('Time since the replicas were counted. Missing before that.'),
  weir_clock_offset_seconds: reading("How far this replica's clock is ahead of the clock of Redis."),
  weir_live_limits: reading('Live limits in force, which were set while the gateway ran.'),
  weir_live_limits_first_end_timestamp_seconds: reading(
    'Unix time at which the first of the live limits in force ends. Missing while there is none.',
  ),

  weir_identifications_total: counterOf(
    'Tokens checked, by identity source, outcome, and whether the result was cached.',
    ['source', 'outcome', 'cached'],
    (identities) => identities.flatMap(identificationsOf).map((one) => one.map(String)),
  ),
  weir_identity_provider_duration_seconds: histogramOf(
    'Duration of calls to identity providers, by provider and outcome.',
    PROVIDER_SECONDS,
    ['provider', 'outcome'],
    (identities) =>
      identities
        .flatMap(providersOf)
        .flatMap((provider) => providerOutcomesOf(provider).map((outcome) => ({ provider, outcome }))),
  ),
  weir_jwks_age_seconds: reading(
    "Time since the issuer's keys were fetched; of several issuers, the longest.",
  ),
  weir_revocations_total: counter('Revocations applied.'),
  weir_revocations_heard: reading('1 while this replica receives revocations from Redis, otherwise 0.'),

  weir_reloads_total: counter('Reloads of changed files, by file and outcome.', {
    file: FILES,
    outcome: ['success', 'failure'],
  }),
  weir_limits_last_reload_successful: lastReload('limits'),
  weir_operations_last_reload_successful: lastReload('operations'),
  weir_identities_last_reload_successful: lastReload('identities'),
  weir_certificates_last_reload_successful: lastReload('certificates'),
  weir_descriptors_last_reload_successful: lastReload('descriptors'),
  weir_limits_info: gauge(
    'Always 1. Replicas with the same limits files in force have the same `sha`.',
    'sha',
  ),
  weir_operations_info: gauge(
    'Always 1. Replicas whose operations have the same names and costs have the same `sha`.',
    'sha',
  ),
  weir_certificate_expiry_timestamp_seconds: gauge(
    'Unix time at which the certificate of a port expires.',
    'port',
  ),
  weir_kubernetes_watch_connected: gauge(
    '1 while the object is watched through the API server, 0 while only its mounted files are polled.',
    'object',
  ),

  weir_notifications_total: counter(
    'Notifications about limits by outcome of an attempt: delivered, retried later, failed for good, dropped, gone with a webhook that wants none, or not recorded by the store.',
    { outcome: ['delivered', 'retried', 'failed', 'dropped', 'gone', 'unclaimed'] },
  ),
  weir_notifications_waiting: reading(
    'Notifications of all replicas that wait for an attempt. Missing without a webhook.',
  ),
  weir_notifications_gone: reading(
    'Whether the webhook has answered 410 since its URL or secret changed: 1 or 0. Missing without a webhook.',
  ),
};

function lastReload(file: (typeof FILES)[number]) {
  return gauge(
    `1 if the last reload of the ${file} succeeded, 0 if it was refused and the previous version is in force.`,
  );
}

/** The metrics of the table in one registry. */
export type MetricTable = { readonly [K in keyof typeof METRICS]: ReturnType<(typeof METRICS)[K]> };

export function registerMetrics(registry: Registry, identities: IdentitySections): MetricTable {
  const made = Object.entries(METRICS).map(([name, row]) => [name, row(name, registry, identities)]);
  return Object.fromEntries(made) as MetricTable;
}

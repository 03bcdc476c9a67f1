import type { Generated, JSONColumnType, Kysely } from 'kysely';

/** Contract section 2.5: `<event>At` to an ISO 8601 time. */
export type EventTimes = Record<string, string>;

/** The database or a transaction on it. A function that takes one writes in its caller's transaction. */
export type Database = Kysely<Tables>;

/** The tables of `migrations/`, for kysely. Times are `Date`, `bigint` sequences are text. */
export interface Tables {
  resources: {
    sequence: Generated<string>;
    id: string;
    kind: string;
    account_id: string | null;
    counterparty_account_id: string | null;
    organization_id: string | null;
    person_id: string | null;
    parent: JSONColumnType<{ type: string; id: string } | null, string | null, string | null>;
    status: string;
    external_id: string | null;
    fields: JSONColumnType<Record<string, unknown>>;
    events: JSONColumnType<EventTimes>;
    created_at: Date;
    updated_at: Date;
  };
  operations: {
    sequence: Generated<string>;
    id: string;
    type: string;
    account_id: string;
    principal_id: string;
    person_id: string | null;
    external_id: string | null;
    status: string;
    input: JSONColumnType<Record<string, unknown>>;
    result: JSONColumnType<Record<string, unknown> | null, string | null, string | null>;
    error: JSONColumnType<{ code: string; detail: string } | null, string | null, string | null>;
    events: JSONColumnType<EventTimes>;
    created_at: Date;
    updated_at: Date;
  };
  subscriptions: {
    sequence: Generated<string>;
    id: string;
    scope_type: string;
    scope_id: string;
    url: string;
    description: string | null;
    subscribed_events: JSONColumnType<string[]>;
    secret: string;
    previous_secret: string | null;
    previous_secret_until: Date | null;
    status: string;
    paused_reason: string | null;
    failing_since: Date | null;
    probe_at: Date | null;
    created_at: Date;
    updated_at: Date;
  };
  events: {
    sequence: Generated<string>;
    id: string;
    /** Only on events of earlier versions. */
    occurrence_id: string | null;
    type: string;
    scope_type: string;
    scope_id: string;
    resource_id: string;
    payload: JSONColumnType<Record<string, unknown>>;
    occurred_at: Date;
    relayed_at: Date | null;
  };
  deliveries: {
    sequence: Generated<string>;
    id: string;
    subscription_id: string;
    event_id: string;
    status: string;
    attempts: Generated<number>;
    created_at: Date;
    delivered_at: Date | null;
    redelivered_at: Date | null;
  };
  delivery_queue: {
    delivery_id: string;
    subscription_id: string;
    due_at: Date;
    /** Until when the process that claimed the delivery may attempt it. */
    leased_until: Generated<Date | null>;
    /** Set by processes of version 0.2.0, for which `due_at` is the end of the lease. */
    is_under_way: Generated<boolean>;
    failures: Generated<number>;
  };
  delivery_attempts: {
    delivery_id: string;
    number: number;
    attempted_at: Date;
    duration_ms: number;
    response_status: number | null;
    response_body: string | null;
    error: string | null;
  };
  search_snapshots: { id: string; account_id: string; query: string; total_size: number; expires_at: Date };
  search_snapshot_rows: {
    snapshot_id: string;
    position: string;
    resource: JSONColumnType<Record<string, unknown>>;
  };
  idempotency_keys: {
    account_id: string;
    principal_id: string;
    /** Null in rows of earlier versions. */
    principal_type: string | null;
    key: string;
    fingerprint: string;
    /** The same for each order of the body's members. Null in rows of earlier versions. */
    unordered_fingerprint: string | null;
    status: number | null;
    body: JSONColumnType<Record<string, unknown> | null, string | null, string | null>;
    created_at: Date;
  };
  audit_logs: {
    sequence: Generated<string>;
    id: string;
    account_id: string;
    principal_id: string;
    operation: string;
    target: string;
    created_at: Date;
  };
  api_keys: { digest: string; resource_id: string };
  secrets: { name: string; value: string };
}

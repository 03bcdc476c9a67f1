/** The journal's tables and statements. */

/** Locks that replicas take, so that only one of them changes the tables at a time. */
export const LOCKS = { migrate: 0x7765696a, tidy: 0x7765696b } as const;

/**
 * Each is run once, in order, in a transaction. They only add, so that replicas of this version and of the one before can write at the same
 * time.
 */
export const MIGRATIONS: readonly string[] = [
  `create table weir_journal (
     fleet text not null,
     scope text not null,
     owner text not null,
     minute timestamptz not null,
     bucket text not null,
     operation text not null,
     key text not null,
     points bigint not null,
     requests bigint not null,
     refused bigint not null,
     primary key (fleet, scope, owner, minute, bucket, operation)
   );
   create index weir_journal_minute on weir_journal using brin (minute);
   create table weir_journal_writers (
     fleet text not null,
     replica text not null,
     sequence bigint not null,
     written_at timestamptz not null,
     primary key (fleet, replica)
   );
   create table weir_journal_joined (fleet text primary key, until timestamptz not null)`,
];

export const CREATE_VERSION = 'create table if not exists weir_journal_version (version integer not null)';

/**
 * Adds sums, unless this replica has written a batch of this sequence: $1 fleet, $2 replica, $3 sequence, then an array for each column.
 * Rows are locked in one order, so that replicas that write the same rows wait for each other and never in a circle.
 */
export const WRITE = `
  with turn as (
    insert into weir_journal_writers as writers (fleet, replica, sequence, written_at) values ($1, $2, $3, now())
    on conflict (fleet, replica) do update set sequence = excluded.sequence, written_at = now()
      where writers.sequence < excluded.sequence
    returning 1
  )
  insert into weir_journal as sums (fleet, scope, owner, minute, bucket, operation, key, points, requests, refused)
  select $1, scope, owner, to_timestamp(minute * 60), bucket, operation, min(key), sum(points), sum(requests), sum(refused)
  from unnest($4::text[], $5::text[], $6::bigint[], $7::text[], $8::text[], $9::text[], $10::bigint[], $11::bigint[], $12::bigint[])
    as added (scope, owner, minute, bucket, operation, key, points, requests, refused)
  where exists (select 1 from turn)
  group by scope, owner, minute, bucket, operation
  order by scope, owner, minute, bucket, operation
  on conflict (fleet, scope, owner, minute, bucket, operation) do update set
    points = sums.points + excluded.points,
    requests = sums.requests + excluded.requests,
    refused = sums.refused + excluded.refused`;

/** Rows of single minutes are kept for longer than the longest window. */
const JOINED_UNTIL = "date_bin('1 hour', now() - interval '32 days', 'epoch')";

/** Where joining goes on: the first hour with rows of single minutes. No row if there is no such hour. $1 fleet. */
export const NEXT_TO_JOIN = `
  select next from (
    select coalesce(
      (select until from weir_journal_joined where fleet = $1),
      (select date_bin('1 hour', min(minute), 'epoch') from weir_journal where fleet = $1)
    ) as next
  ) as hours where next < ${JOINED_UNTIL}`;

/**
 * Joins the rows of an hour into quarters of an hour. The time zones of today differ from UTC by whole quarters, so that days can still be
 * separated. $1 fleet, $2 start of the hour.
 */
export const JOIN_HOUR = `
  with old as (
    delete from weir_journal where fleet = $1 and minute >= $2 and minute < $2::timestamptz + interval '1 hour' returning *
  )
  insert into weir_journal (fleet, scope, owner, minute, bucket, operation, key, points, requests, refused)
  select fleet, scope, owner, date_bin('15 minutes', minute, 'epoch'), bucket, operation, min(key),
    sum(points), sum(requests), sum(refused)
  from old group by 1, 2, 3, 4, 5, 6`;

export const JOINED = `
  insert into weir_journal_joined (fleet, until) values ($1, $2::timestamptz + interval '1 hour')
  on conflict (fleet) do update set until = excluded.until`;

/** Drops what is too old. $1 fleet. */
export const DROP_OLD = [
  "delete from weir_journal where fleet = $1 and minute < now() - interval '400 days'",
  "delete from weir_journal_writers where fleet = $1 and written_at < now() - interval '7 days'",
];

/** The sums of a time by day and operation. $1 fleet, $2 scope, $3 owner, $4 time zone, $5 start, $6 end. */
export const PAST = `
  select to_char(minute at time zone $4, 'YYYY-MM-DD') as day, operation, bucket as limit,
    sum(points)::float8 as points, sum(requests)::float8 as requests, sum(refused)::float8 as refused
  from weir_journal
  where fleet = $1 and scope = $2 and owner = $3 and minute >= $5 and minute < $6
  group by 1, 2, 3 order by 1, 2, 3`;

/** The same of all owners, in pages. $2 time zone, $3 start, $4 end, $5 and $6 scope and owner after which the page begins, $7 owners. */
export const EXPORT = `
  with owners as (
    select distinct scope, owner from weir_journal
    where fleet = $1 and minute >= $3 and minute < $4 and (scope, owner) > ($5, $6)
    order by scope, owner limit $7
  )
  select scope, owner as id, to_char(minute at time zone $2, 'YYYY-MM-DD') as day, operation, bucket as limit,
    sum(points)::float8 as points, sum(requests)::float8 as requests, sum(refused)::float8 as refused
  from weir_journal join owners using (scope, owner)
  where fleet = $1 and minute >= $3 and minute < $4
  group by 1, 2, 3, 4, 5 order by 1, 2, 3, 4, 5`;

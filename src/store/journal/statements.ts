/** The journal's tables and statements. */

/** Locks that replicas take, so that only one of them changes the tables at a time. */
export const LOCKS = { migrate: 0x7765696a, recover: 0x7765696c } as const;

/**
 * Begins a transaction that holds one of these locks. A replica that is gone without a word, as one that lost its power, keeps its transaction
 * open, and PostgreSQL would not notice for two hours: `statement_timeout` ends no transaction that waits for its client. So PostgreSQL
 * ends it after this many ms of silence, also while it sends an answer (`tcp_user_timeout`, since PostgreSQL 12).
 */
export const beginWithLock = (silentMs: number) => `
  begin;
  set local idle_in_transaction_session_timeout = ${silentMs};
  select set_config(name, '${silentMs}', true) from pg_settings where name = 'tcp_user_timeout'`;

/**
 * Each is run once, in order, in a transaction. They only add, so that replicas of this version and of the one before can write at the same
 * time.
 */
export const MIGRATIONS: readonly string[] = [
  // By quarters of an hour: the time zones of today differ from UTC by whole quarters, so that days can be separated, and an owner that is
  // used all the time has a fifteenth of its minutes.
  `create table weir_journal (
     fleet text not null,
     scope text not null,
     owner text not null,
     quarter timestamptz not null,
     bucket text not null,
     operation text not null,
     points bigint not null,
     requests bigint not null,
     refused bigint not null,
     primary key (fleet, scope, owner, quarter, bucket, operation)
   );
   create index weir_journal_quarter on weir_journal using brin (quarter);
   -- What counts now, so that a recovery reads a row for each bucket of a period, and at most a hundred for a window. Times are Unix
   -- times in seconds. Only points and last_at change, which no index has.
   create table weir_journal_counts (
     fleet text not null,
     key text collate "C" not null,
     start bigint not null,
     until bigint not null,
     window_seconds bigint,
     last_at bigint not null,
     points bigint not null,
     primary key (fleet, key, start)
   ) with (fillfactor = 80);
   create index weir_journal_counts_until on weir_journal_counts (fleet, until);
   create table weir_journal_writers (
     fleet text not null,
     replica text not null,
     sequence bigint not null,
     written_at timestamptz not null,
     primary key (fleet, replica)
   );
   create table weir_journal_replicas (
     fleet text not null,
     replica text not null,
     seen_at timestamptz not null,
     flushed bigint not null,
     primary key (fleet, replica)
   );
   create table weir_journal_recovery (
     fleet text primary key,
     asked bigint not null,
     asked_at timestamptz,
     server text,
     reading bigint
   )`,
];

export const CREATE_VERSION = 'create table if not exists weir_journal_version (version integer not null)';

/**
 * Adds sums, unless this replica has written a batch of this sequence: $1 fleet, $2 replica, $3 sequence, then an array for each column of
 * the groups, and of the sums.
 * Rows are locked in one order, so that replicas that write the same rows wait for each other and never in a circle.
 */
export const WRITE = `
  with turn as (
    insert into weir_journal_writers as writers (fleet, replica, sequence, written_at) values ($1, $2, $3, now())
    on conflict (fleet, replica) do update set sequence = excluded.sequence, written_at = now()
      where writers.sequence < excluded.sequence
    returning 1
  ), added as (
    select * from unnest($4::text[], $5::text[], $6::text[], $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[])
      with ordinality as groups (scope, bucket, operation, minute, start, until, window_seconds, number)
    join unnest($11::bigint[], $12::text[], $13::text[], $14::bigint[], $15::bigint[], $16::bigint[])
      as sums (number, owner, key, points, requests, refused) using (number)
    where exists (select 1 from turn)
  ), counted as (
    insert into weir_journal_counts as counts (fleet, key, start, until, window_seconds, last_at, points)
    select $1, key, start, max(until), max(window_seconds), max(minute) * 60 + 60, sum(points)
    from added where points <> 0
    group by key, start
    order by key collate "C", start
    on conflict (fleet, key, start) do update set
      points = counts.points + excluded.points,
      last_at = greatest(counts.last_at, excluded.last_at),
      until = greatest(counts.until, excluded.until),
      window_seconds = greatest(counts.window_seconds, excluded.window_seconds)
  )
  insert into weir_journal as sums (fleet, scope, owner, quarter, bucket, operation, points, requests, refused)
  select $1, scope, owner, to_timestamp(minute / 15 * 900) as quarter, bucket, operation, sum(points), sum(requests), sum(refused)
  from added
  group by scope, owner, quarter, bucket, operation
  order by scope, owner, quarter, bucket, operation
  on conflict (fleet, scope, owner, quarter, bucket, operation) do update set
    points = sums.points + excluded.points,
    requests = sums.requests + excluded.requests,
    refused = sums.refused + excluded.refused`;

/** The condition stands twice, because a row may be written again between the two looks at it. */
const dropOld = (table: string, condition: string) => `
  delete from ${table} where fleet = $1 and ${condition} and ctid = any(array(
    select ctid from ${table} where fleet = $1 and ${condition} limit $2
  ))`;

/** The clock of PostgreSQL may be so much ahead of Redis's, whose time decides what has ended. As a subquery, it is worked out once. */
const NOW = "(select extract(epoch from now() - interval '1 minute')::bigint)";

/**
 * Counts that have ended. If a limit has got another calendar, a period may have ended whose points count in the next one, which began
 * earlier.
 */
const DROP_ENDED = `
  delete from weir_journal_counts where ctid = any(array(
    select ctid from weir_journal_counts as counts where fleet = $1 and until < ${NOW} and not exists (
      select from weir_journal_counts as later
      where later.fleet = $1 and later.key = counts.key and later.until >= ${NOW} and later.start < counts.last_at
    ) limit $2
  ))`;

/** Each drops rows that nobody needs, at most $2 of them, so that it takes no longer than other queries. $1 fleet. */
export const DROPS: readonly string[] = [
  dropOld('weir_journal', "quarter < now() - interval '400 days'"),
  dropOld('weir_journal_writers', "written_at < now() - interval '7 days'"),
  dropOld('weir_journal_replicas', "seen_at < now() - interval '1 hour'"),
  DROP_ENDED,
];

/** The sums of a time by day and operation. $1 fleet, $2 scope, $3 owner, $4 time zone, $5 start, $6 end. */
export const PAST = `
  select to_char(quarter at time zone $4, 'YYYY-MM-DD') as day, operation, bucket as limit,
    sum(points)::float8 as points, sum(requests)::float8 as requests, sum(refused)::float8 as refused
  from weir_journal
  where fleet = $1 and scope = $2 and owner = $3 and quarter >= $5 and quarter < $6
  group by 1, 2, 3 order by 1, 2, 3`;

/** The same of all owners, in pages. $2 time zone, $3 start, $4 end, $5 and $6 scope and owner after which the page begins, $7 owners. */
export const EXPORT = `
  with owners as (
    select distinct scope, owner from weir_journal
    where fleet = $1 and quarter >= $3 and quarter < $4 and (scope, owner) > ($5, $6)
    order by scope, owner limit $7
  )
  select scope, owner as id, to_char(quarter at time zone $2, 'YYYY-MM-DD') as day, operation, bucket as limit,
    sum(points)::float8 as points, sum(requests)::float8 as requests, sum(refused)::float8 as refused
  from weir_journal join owners using (scope, owner)
  where fleet = $1 and quarter >= $3 and quarter < $4
  group by 1, 2, 3, 4, 5 order by 1, 2, 3, 4, 5`;

/** A replica lives, and has written what it counted before this recovery asked: $1 fleet, $2 replica, $3 number of the recovery. */
export const ATTEND = `
  insert into weir_journal_replicas as replicas (fleet, replica, seen_at, flushed) values ($1, $2, now(), $3)
  on conflict (fleet, replica) do update set seen_at = now(), flushed = greatest(replicas.flushed, excluded.flushed)
  returning (
    select json_build_object('asked', asked, 'reading', reading, 'server', server, 'askedSeconds', extract(epoch from now() - asked_at))
    from weir_journal_recovery where fleet = $1
  ) as recovery`;

/** Asks all replicas to write what they have counted. Returns the number of the recovery. $1 fleet, $2 the server that has lost something. */
export const ASK = `
  insert into weir_journal_recovery as recovery (fleet, asked, asked_at, server) values ($1, 1, now(), $2)
  on conflict (fleet) do update set asked = recovery.asked + 1, asked_at = now(), server = $2 returning asked`;

/** What is written from now on may be missing in what this recovery reads. $1 fleet, $2 number of the recovery. */
export const READING = `
  update weir_journal_recovery set reading = greatest(reading, $2) where fleet = $1`;

/** The replicas that live and have not written. $1 fleet, $2 number of the recovery. */
export const UNFLUSHED = `
  select replica from weir_journal_replicas
  where fleet = $1 and flushed < $2 and seen_at > now() - interval '2500 milliseconds'`;

/**
 * What counts now, as lua/put-back.lua reads it: keys, texts of them, and the last key. $1 fleet. Neither a key nor a number has a space or
 * a comma. Sums are exact up to 2^53, and sums of bigint take longer. As in Redis, a period has the points of an earlier one that was
 * charged after the start of this one: its limit has got another calendar since.
 */
const presentOf = (condition: string, limit: string) => `
  select string_agg(key, ' ') as keys, string_agg(text, ',') as texts, max(key) as last from (
    select key, case when max(window_seconds) is null
      then max(start) || ' ' || max(until) || ' ' || max(last_at) || ' ' || case
        when min(last_at) > max(start) then sum(points::float8)::bigint
        else (
          select sum(own.points::float8)::bigint from weir_journal_counts as own
          where own.fleet = $1 and own.key = counts.key and own.last_at > max(counts.start)
        ) end
      else max(window_seconds) || ' ' ||
        string_agg(last_at || ' ' || points, ' ' order by last_at) filter (where window_seconds is not null) end as text
    from weir_journal_counts as counts where fleet = $1 and ${condition} and (window_seconds is null or until > ${NOW})
    group by key having max(window_seconds) is not null or sum(points::float8) > 0 and max(until) > ${NOW}
    order by key ${limit}
  ) as present`;

/** A page of it: $2 the key after which the page begins, $3 keys. */
export const PRESENT = presentOf('key > $2', 'limit $3');

/** Of some buckets: $2 their keys. */
export const COUNTS_OF = presentOf('key = any($2)', '');

/** Pages are read in the order of the primary key: the first one comes at once, and all of them take one pass. */
export const READ_IN_ORDER =
  'set local enable_seqscan = off; set local enable_bitmapscan = off; set local enable_hashagg = off';

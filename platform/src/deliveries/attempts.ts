import { setTimeout } from 'node:timers/promises';
import { sql } from 'kysely';
import type { Database } from '../database/schema.ts';
import type { DeliverySettings } from '../settings.ts';
import type { AttemptOutcome } from './post.ts';
import type { ClaimedDelivery } from './queue.ts';

/** A finished attempt. */
export interface Attempt {
  readonly delivery: ClaimedDelivery;
  readonly attemptedAt: Date;
  readonly outcome: AttemptOutcome;
}

/** Attempts of one delivery that the log keeps: the first one and the last ones. A held delivery may be probed for a month. */
export const KEPT_ATTEMPTS = 50;

/** SQLSTATE of a transaction that another one waited for while it waited for that one. */
const DEADLOCK = '40P01';
const MOST_DEADLOCKS = 5;
/** After a deadlock, the other transaction gets the locks first: at once, this one could take them before it wakes up. */
const DEADLOCK_PAUSE_MS = 50;
/** SQLSTATE of values that PostgreSQL refuses. */
const REFUSED_VALUE = /^2[23]/;

/**
 * Logs attempts as `writeAttempts` does, and repeats it after a deadlock. If PostgreSQL refuses a value of one, it logs the halves
 * of the attempts one after the other, so that no answer of an endpoint loses the attempts of others. A single attempt is then logged
 * without its answer.
 */
export async function logAttempts(
  db: Database,
  settings: DeliverySettings,
  attempts: readonly Attempt[],
  now: Date,
): Promise<void> {
  try {
    await writeUnlessDeadlocked(db, settings, attempts, now);
  } catch (error) {
    if (!REFUSED_VALUE.test(codeOf(error))) throw error;
    const middle = Math.ceil(attempts.length / 2);
    if (middle === attempts.length) return writeAttempts(db, settings, attempts.map(withoutAnswer), now);
    await logAttempts(db, settings, attempts.slice(0, middle), now);
    await logAttempts(db, settings, attempts.slice(middle), now);
  }
}

async function writeUnlessDeadlocked(...parameters: Parameters<typeof writeAttempts>): Promise<void> {
  for (let deadlocks = 0; ; ) {
    try {
      return await writeAttempts(...parameters);
    } catch (error) {
      if (codeOf(error) !== DEADLOCK || ++deadlocks === MOST_DEADLOCKS) throw error;
      await setTimeout(DEADLOCK_PAUSE_MS);
    }
  }
}

const codeOf = (error: unknown) => String((error as NodeJS.ErrnoException).code);

function withoutAnswer(attempt: Attempt): Attempt {
  const { outcome } = attempt;
  const error = outcome.error === null ? null : 'The answer cannot be stored.';
  return { ...attempt, outcome: { ...outcome, responseBody: null, error } };
}

/**
 * Logs attempts and, in the same statement, removes finished deliveries from the queue and schedules the next attempt
 * of the others. If the subscription has another URL by now, that one is due at once, whatever the number of attempts. Otherwise a
 * success also ends the failing state of the endpoint.
 */
async function writeAttempts(
  db: Database,
  settings: DeliverySettings,
  attempts: readonly Attempt[],
  now: Date,
): Promise<void> {
  const rows = attempts.map((attempt) => rowOf(attempt, settings, now));
  // A delivery may have been deleted in the meantime, so everything joins existing rows. It may also have ended
  // with an attempt of another process that took over its lease. Then only a success changes it, because a failure is not retried. The
  // lock waits for a process that is logging such an attempt. It reads `subscription` so that subscriptions are locked before their
  // queues, and each in the order of ids, as everywhere: in another order two transactions could wait for each other. The lock of a
  // subscription waits for a change of its URL, or makes it wait: otherwise neither of both would make the next attempt due. What
  // changes the queue reads the locked rows, because a row that this statement has changed can no longer be locked.
  await sql`
    with written as (
      select * from json_to_recordset(${JSON.stringify(rows)}::text::json) as (
        delivery_id text, subscription_id text, url text, attempted_at timestamptz, duration_ms int,
        response_status int, response_body text, error text, outcome text, failures int, retry_at timestamptz
      )
    ), subscription as (
      select id, url from subscriptions
      where id in (select subscription_id from written) and (
        failing_since is not null and status = 'Active'
        or id in (select subscription_id from written where outcome <> 'Delivered')
      )
      order by id for no key update
    ), attempt as (${DECIDED}), proven as (
      update subscriptions set failing_since = null
      where failing_since is not null and status = 'Active'
        and (id, url) in (select subscription_id, url from written where outcome = 'Delivered')
        and (select count(*) from subscription) >= 0
    ), queued as (
      select delivery_id from delivery_queue
      where delivery_id in (select delivery_id from written) and (select count(*) from subscription) >= 0
      order by delivery_id for update
    ), counted as (${COUNTED}), logged as (
      insert into delivery_attempts (delivery_id, number, attempted_at, duration_ms, response_status, response_body, error)
      select counted.id, number, attempted_at, duration_ms, response_status, response_body, error
      from attempt join counted on counted.id = attempt.delivery_id
    ), forgotten as (
      delete from delivery_attempts using counted
      where delivery_id = counted.id and delivery_attempts.number > 1
        and delivery_attempts.number <= counted.number - ${KEPT_ATTEMPTS - 1}
    ), retried as (
      update delivery_queue set
        due_at = case when is_moved then ${now} else retry_at end,
        leased_until = null, is_under_way = false, failures = attempt.failures
      from attempt join queued on queued.delivery_id = attempt.delivery_id
      where delivery_queue.delivery_id = attempt.delivery_id and result = 'Pending'
    )
    delete from delivery_queue using attempt join queued on queued.delivery_id = attempt.delivery_id
    where delivery_queue.delivery_id = attempt.delivery_id and result <> 'Pending'
  `.execute(db);
}

/** The last attempt at an earlier URL does not fail a delivery. */
const DECIDED = sql`
  select written.*, coalesce(subscription.url <> written.url, false) as is_moved,
    case when outcome = 'Failed' and subscription.url <> written.url then 'Pending' else outcome end as result
  from written left join subscription on subscription.id = written.subscription_id`;

const COUNTED = sql`
  update deliveries set
    attempts = attempts + 1,
    status = case when queued.delivery_id is null and result <> 'Delivered' then status else result end,
    delivered_at = coalesce(
      case when queued.delivery_id is null then delivered_at end,
      case result when 'Delivered' then attempted_at end
    )
  from attempt left join queued on queued.delivery_id = attempt.delivery_id
  where deliveries.id = attempt.delivery_id
  returning deliveries.id, deliveries.attempts as number`;

function rowOf({ delivery, attemptedAt, outcome }: Attempt, settings: DeliverySettings, now: Date) {
  // Probes do not count as attempts: deliveries held for a failing endpoint wait until it answers.
  const failures = delivery.failures + (outcome.isDelivered || delivery.isProbe ? 0 : 1);
  const failed = failures >= settings.maxAttempts ? 'Failed' : 'Pending';
  return {
    delivery_id: delivery.deliveryId,
    subscription_id: delivery.subscriptionId,
    url: delivery.url,
    attempted_at: attemptedAt,
    duration_ms: outcome.durationMs,
    response_status: outcome.responseStatus,
    response_body: outcome.responseBody,
    error: outcome.error,
    outcome: outcome.isDelivered ? 'Delivered' : failed,
    failures,
    // `probe_at` of the subscription decides when the next probe is sent.
    retry_at: delivery.isProbe
      ? now
      : new Date(now.getTime() + retryDelayMs(failures, settings.retryBaseSeconds)),
  };
}

/** A random delay of one to two times the base after the first failure, doubled after each further failure. */
function retryDelayMs(failures: number, baseSeconds: number): number {
  return baseSeconds * 1000 * 2 ** Math.max(0, failures - 1) * (1 + Math.random());
}

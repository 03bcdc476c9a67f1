/** Seconds between two reads of a record that replicas share, as messages name them. */
export const LOOK_SECONDS = 5;

/**
 * How many times faster periods run than in production. Tests set it, so that they wait less. It is no setting: all replicas of a
 * deployment need the same periods.
 */
const FASTER = Number(process.env.WEIR_TEST_PACE) || 1;

/** A period of something that is repeated, in milliseconds. */
function every(ms: number): number {
  return Math.ceil(ms / FASTER);
}

/**
 * How long something counts that is renewed. It shrinks half as much as the period of the renewal: on a machine that is busy with
 * tests, a process may pause for longer than five times its usual margin.
 */
function lasts(ms: number): number {
  return Math.ceil(ms / Math.max(1, FASTER / 2));
}

/**
 * A time-out, which does not shrink: on a machine that is busy with tests, a turn of the event loop may take half a second, and several
 * gateways, their Redis's proxy and their clients share one.
 */
function timeout(ms: number): number {
  return FASTER > 1 ? 5 * ms : ms;
}

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;

/** How often the program repeats what it does without a request, and how long the results count. In milliseconds. */
export const pace = {
  /** Between two reads of a record that replicas share: the longest delay of a message if the subscription broke unnoticed. */
  lookMs: every(LOOK_SECONDS * 1_000),
  /** Until a read that failed is tried again. */
  lookAgainMs: every(250),
  /** Between two announcements of a replica. Three may fail before others miss it. */
  announceMs: every(400),
  /** How long a replica counts as alive after it has announced itself. */
  presenceMs: lasts(1_800),
  /** Between two renewals by which a replica that holds slots stays alive in the store. */
  renewalMs: every(1_000),
  /** How long the slots of a replica count after its last renewal or their last change. In production, a renewal may be late by 1.9 s. */
  leaseMs: lasts(2_900),
  /** How long a replica takes to state the slots of each owner again. */
  statementsMs: every(30_000),
  /** Life of a key of slots. Several statements may fail. */
  slotKeyMs: lasts(90_000),
  /** Between two looks for facts that have ended. */
  endsMs: every(1_000),
  /** Between two publications of a replica, and between two measurements of its store. */
  publishMs: every(1_000),
  /** How long what a replica published is kept. */
  boardMs: lasts(3_500),
  /** How long a reading of the fleet, and a reading of the reports on one owner, is shared by those who ask. */
  fleetReadingMs: every(700),
  reportsReadingMs: every(400),
  /** Between two signs of a replica to those that watch it, and how long it may give none before it is lost. */
  watchMs: every(1_500),
  missedMs: lasts(5_000),
  /** How long a reading of what was lost is shared by those who look at consoles. */
  lossesReadingMs: every(3_000),
  /** Between two writes of tries of revoked tokens, and how long a reading of them is shared. */
  triesMs: every(2_000),
  triesReadingMs: every(1_000),
  /** Time-out for connecting to Redis, and for a connection with an unanswered command. */
  silenceMs: timeout(SECOND_MS),
  /** Between two looks at the settings of a Redis. */
  settingsMs: every(30_000),
  /** Waits between probes of a store that failed: short at first, because most outages are short. */
  probes: { firstMs: every(50), longestMs: every(250) },
  /** Waits before a settlement that a store did not answer is sent again. */
  settlements: { firstMs: every(100), longestMs: every(5_000) },
  /** Between two times that a replica renews the key of receipts, and between two looks for another one because of an unknown receipt. */
  receiptKeyMs: every(60_000),
  receiptKeyRereadMs: every(1_000),
  /** How long a receiver of notifications may take to answer. Standard Webhooks recommends 15 to 30 s. */
  webhookMs: every(15 * SECOND_MS),
  /**
   * Waits after each failed attempt to notify: the example of Standard Webhooks as far as it fits a day, and a last attempt at its
   * end.
   */
  webhookWaitsMs: [
    5 * SECOND_MS,
    5 * MINUTE_MS,
    30 * MINUTE_MS,
    2 * HOUR_MS,
    5 * HOUR_MS,
    10 * HOUR_MS,
    23_095 * SECOND_MS,
  ].map(every),
  /** How long nobody calls a receiver that answered 429 without `Retry-After`. */
  webhookPauseMs: every(MINUTE_MS),
  /** Between two looks of a replica for messages that are due, and how long a message is its own. */
  outboxLookMs: every(SECOND_MS),
  outboxLeaseMs: lasts(30 * SECOND_MS),
  /** How long the claim of a notification lasts until its message is in the store. */
  claimMs: lasts(10 * SECOND_MS),
  /** Between two looks at watched files. No faster in tests: each takes a few system calls for each file. */
  filesMs: 400,
} as const;

import { type Static, type TSchema, Type } from 'typebox';
import type { Immutable } from '../../config/settings/settings.ts';
import type { Ignored } from '../../facts/ignored.ts';
import { amount, matching, plainText, timeMs, withReadable } from '../../facts/message-bounds.ts';
import { MOST_CHANGES, type NoticedChange, noticedChange } from '../../observe/log/noticed-changes.ts';
import { SECONDS } from '../../observe/metrics/fast-metrics.ts';
import { asRefusedRequest, PUBLISHED_REFUSALS, refusedRequest } from './refusals.ts';

/** Seconds of history that a replica publishes. */
export const PULSE_SECONDS = 60;

/** What is counted per second. */
export const SERIES = ['requests', 'points', 'refused', 'degraded', 'failed'] as const;

/** More than the histograms have buckets. */
const MOST_DURATIONS = 64;

/** What one second came to at one replica. */
const second = Type.Object({
  /** In the order of `SERIES`. */
  counts: Type.Array(amount, { minItems: SERIES.length, maxItems: SERIES.length }),
  /** Requests by duration, in the buckets of the metrics; without the zeros at the end. */
  durations: Type.Array(amount, { maxItems: MOST_DURATIONS }),
});

/** What each so many seconds came to. */
const slices = Type.Object({
  stepSeconds: Type.Union([Type.Literal(10), Type.Literal(60)]),
  /** Unix time at which the last of them began, in so many seconds, by the clock of Redis. */
  slot: timeMs,
  /** Oldest first. */
  slices: Type.Array(second, { maxItems: PULSE_SECONDS }),
});

const nullable = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()]);

const payer = {
  traffic: Type.Union([Type.Literal('caller'), Type.Literal('public'), Type.Literal('uncharged')]),
  id: plainText(300),
  present: amount,
};

/** Payers that a queue names. */
export const NAMED_PAYERS = 5;

/** Characters of a path prefix. */
export const LONGEST_PREFIX = 300;

/** An upstream that requests wait for: who waits, longest first, and who has the places. */
const queue = Type.Object({
  /** Path prefix of its requests. */
  prefix: plainText(LONGEST_PREFIX),
  waiting: amount,
  present: amount,
  limit: amount,
  waitingPayers: Type.Array(Type.Object({ ...payer, waiting: amount, longestMs: amount }), {
    maxItems: NAMED_PAYERS,
  }),
  presentPayers: Type.Array(Type.Object(payer), { maxItems: NAMED_PAYERS }),
});

/** Queues that a replica publishes. */
export const MOST_QUEUES = 10;

const pulse = Type.Object({
  /** Version of this format. A replica ignores the pulses of other versions. */
  format: Type.Literal(1),
  /** Host name of the replica. */
  name: plainText(255),
  /** The URL of its admin port. A replica of an earlier version publishes neither this nor `history`. */
  adminUrl: Type.Optional(nullable(plainText(300))),
  /** Unix time in milliseconds, by the clock of Redis. */
  startedAtMs: timeMs,
  isReady: Type.Boolean(),
  /** The version of the limits in force, as `weir_limits_info` has it. */
  limits: plainText(200),
  /** The version of the operations in force, and the last changes. A replica of an earlier version does not publish them. */
  operations: Type.Optional(plainText(200)),
  changes: Type.Optional(Type.Array(noticedChange, { maxItems: MOST_CHANGES })),
  /** The version of Weir. A replica of an earlier version does not publish it. */
  version: Type.Optional(plainText(50)),
  /**
   * The memory of the process, null while the system does not say; and when the first certificate of its ports ends, null without any. A
   * replica of an earlier version does not publish them.
   */
  memoryBytes: Type.Optional(nullable(amount)),
  certificateEndsMs: Type.Optional(nullable(timeMs)),
  /** The age of the oldest count that is not in the journal; null without one. A replica of an earlier version does not publish it. */
  journalLagSeconds: Type.Optional(nullable(amount)),
  /** The upstreams that requests wait for. A replica of an earlier version does not publish them. */
  queues: Type.Optional(Type.Array(queue, { maxItems: MOST_QUEUES })),
  /** How many live limits are in force. */
  liveLimits: amount,
  /** How far the clock of the replica is ahead of the clock of Redis. A replica of an earlier version does not publish it. */
  clockOffsetMs: Type.Optional(nullable(Type.Number())),
  /** Unix time by the clock of Redis. A replica of an earlier version does not publish it. */
  takenAtMs: Type.Optional(timeMs),
  store: Type.Object({
    kind: plainText(50),
    breaker: Type.Union([Type.Literal('closed'), Type.Literal('half-open'), Type.Literal('open')]),
    /** Redis settings that allow limits to be exceeded. */
    unsafeSettings: amount,
    /** The 99th percentile of its calls in the last ten seconds; null without calls. */
    p99Ms: nullable(amount),
    /** When it was last asked for an answer. A replica of an earlier version does not publish this and the next. */
    measuredAtMs: Type.Optional(timeMs),
    /** Why it does not answer; null if it does. */
    problem: Type.Optional(nullable(plainText(100))),
    /** The number of replicas that limits are divided by during an outage, and the age of that number. Null without `share`. */
    share: Type.Optional(nullable(Type.Object({ replicas: amount, ageSeconds: nullable(amount) }))),
  }),
  /** Since the replica started. */
  totals: Type.Object({
    requests: amount,
    points: amount,
    refused: amount,
    degraded: amount,
    failed: amount,
  }),
  /** Unix second of the last of `seconds`, by the clock of Redis. */
  second: timeMs,
  /** The last complete seconds, oldest first. */
  seconds: Type.Array(second, { maxItems: PULSE_SECONDS }),
  /** The ten minutes and the hour before. */
  history: Type.Optional(Type.Array(slices, { maxItems: 2 })),
  /** The most recent refusals, newest first. */
  refusals: Type.Array(refusedRequest, { maxItems: PUBLISHED_REFUSALS }),
});

export type Second = Immutable<Static<typeof second>>;

/** What a replica publishes about itself every second. The offset of its clock is null where it is not known. */
export type Pulse = Immutable<
  Required<Static<typeof pulse>> & { store: Required<Static<typeof pulse>['store']> }
>;

const asPulse = matching(pulse);
const LISTS = { changes: matching(noticedChange), queues: matching(queue), refusals: asRefusedRequest };

/**
 * The pulse within a published summary; undefined if this version can read none. A pulse is as old as the clock of
 * Redis says. One of a replica that has not read that clock, or of an earlier version, was taken now: Redis keeps it for seconds.
 *
 * @param ignored counts the changes, queues and refusals that cannot be read, and are left out
 */
export function readPulse(
  published: unknown,
  nowMs: number,
  ignored?: Pick<Ignored, 'add'>,
): Pulse | undefined {
  const given = (published as { readonly pulse?: unknown } | null)?.pulse;
  const read = asPulse(withReadable(given, LISTS, ignored));
  if (read === undefined) return undefined;
  const {
    clockOffsetMs = null,
    adminUrl = null,
    history = [],
    operations = '',
    version = '',
    memoryBytes = null,
    certificateEndsMs = null,
    journalLagSeconds = null,
    changes = [],
    queues = [],
    store,
  } = read;
  const takenAtMs = clockOffsetMs === null ? nowMs : Math.min(read.takenAtMs ?? nowMs, nowMs);
  const { measuredAtMs = takenAtMs, problem = null, share = null } = store;
  return {
    ...read,
    clockOffsetMs,
    adminUrl,
    history,
    operations,
    version,
    memoryBytes,
    certificateEndsMs,
    journalLagSeconds,
    changes,
    queues,
    takenAtMs,
    store: { ...store, measuredAtMs, problem, share },
  };
}

/** Whether a summary has a pulse at all. A replica of an earlier version publishes none. */
export function hasPulse(published: unknown): boolean {
  const format = (published as { readonly pulse?: { readonly format?: unknown } | null } | null)?.pulse
    ?.format;
  return format === 1;
}

/** The bounds of the histograms, from 0. */
const BOUNDS_MS = [0, ...SECONDS.map((seconds) => seconds * 1_000)];

/**
 * A percentile of durations that were counted in the buckets of the metrics: linear within a bucket, as Prometheus computes
 * it, and the highest bound for a duration above it. Null without durations.
 */
export function quantileMs(counts: readonly number[], share: number): number | null {
  const total = counts.reduce((sum, count) => sum + count, 0);
  if (total === 0) return null;
  let below = 0;
  for (const [index, count] of counts.entries()) {
    const rank = share * total - below;
    if (count > 0 && rank <= count) {
      const [from = 0, to = from] = BOUNDS_MS.slice(index, index + 2);
      return Math.round((from + (to - from) * (rank / count)) * 1_000) / 1_000;
    }
    below += count;
  }
  return BOUNDS_MS.at(-1) ?? null;
}

/** Replicas notice a changed ConfigMap up to this far apart. */
const SAME_CHANGE_MS = 120_000;

/**
 * The changes of all replicas as they were first noticed, newest first, and by how many replicas. What several replicas noticed within
 * two minutes is one change.
 */
export function mergedChanges(pulses: readonly Pulse[]) {
  const merged: { first: NoticedChange; readonly seenBy: Set<number> }[] = [];
  const all = pulses.flatMap(({ changes }, replica) => changes.map((change) => ({ change, replica })));
  for (const { change, replica } of all.sort((a, b) => a.change.atMs - b.change.atMs)) {
    const known = merged.findLast(
      ({ first, seenBy }) =>
        first.name === change.name &&
        first.text === change.text &&
        change.atMs - first.atMs < SAME_CHANGE_MS &&
        !seenBy.has(replica),
    );
    if (known === undefined) merged.push({ first: change, seenBy: new Set([replica]) });
    else known.seenBy.add(replica);
  }
  return merged
    .reverse()
    .slice(0, MOST_CHANGES)
    .map(({ first, seenBy }) => ({ ...first, replicas: seenBy.size }));
}

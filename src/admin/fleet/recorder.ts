import { hostname } from 'node:os';
import { version } from '../../config/package.ts';
import { plainLine } from '../../domain/printable.ts';
import type { Replicas } from '../../facts/replicas.ts';
import type { SharedClock } from '../../facts/shared-clock.ts';
import type { UpstreamQueue } from '../../observe/gateway-observer.ts';
import type { Changes } from '../../observe/log/noticed-changes.ts';
import type { RequestTotals } from '../../observe/metrics/request-metrics.ts';
import type { StoreTotals } from '../../observe/metrics/store-metrics.ts';
import {
  LONGEST_PREFIX,
  MOST_QUEUES,
  NAMED_PAYERS,
  PULSE_SECONDS,
  type Pulse,
  quantileMs,
  SERIES,
  type Second,
} from './pulse.ts';
import { LONG_STEPS, LongRange } from './ranges.ts';
import type { Refusals } from './refusals.ts';
import type { StoreHealth } from './store-health.ts';

const SECOND_MS = 1_000;

/** The store's percentile covers this many seconds. */
const STORE_SECONDS = 10;

/**
 * Reads the metrics of this process at the end of every second and keeps the last minute. It adds nothing to a request:
 * the counters exist anyway.
 */
export class Recorder {
  /** The URL of the admin port; null before it is open. */
  adminUrl: string | null = null;
  readonly #sources;
  readonly #startedAtMs: number;
  #totals: RequestTotals;
  #second: number;
  #seconds: Second[] = [];
  readonly #history: readonly LongRange[];
  #calls: (readonly number[])[];
  #timer: NodeJS.Timeout | undefined;

  constructor(
    sources: {
      readonly metrics: {
        requestTotals(): RequestTotals;
        storeTotals(): StoreTotals;
        upstreamsInDemand(): readonly UpstreamQueue[];
        limitsVersion(): string;
        operationsVersion(): string;
        journalLagSeconds(): number | undefined;
      };
      readonly storeKind: string;
      /** The replicas that limits are divided by while the store is away; undefined where they are not. */
      readonly share?: Replicas | undefined;
      readonly storeHealth: Pick<StoreHealth, 'measure' | 'last'>;
      readonly refusals: Refusals;
      readonly changes: Pick<Changes, 'latest'>;
      /** When the certificate of each port ends, in Unix time. */
      readonly certificateEnds: ReadonlyMap<string, number>;
      isReady(): boolean;
      liveLimits(): number;
      /** The clock of Redis. */
      readonly clock: Pick<SharedClock, 'nowMs' | 'offsetMs'>;
    },
    nowMs = Date.now(),
  ) {
    this.#sources = sources;
    this.#startedAtMs = nowMs;
    this.#totals = sources.metrics.requestTotals();
    this.#second = Math.floor(nowMs / SECOND_MS) - 1;
    this.#calls = [sources.metrics.storeTotals().calls];
    this.#history = LONG_STEPS.map((step) => new LongRange(step, this.#second + 1));
  }

  /** Samples just after the end of every second until `stop`. */
  start(): void {
    const nowMs = Date.now();
    this.sample(nowMs);
    void this.#sources.storeHealth.measure();
    const untilNextMs = SECOND_MS - (nowMs % SECOND_MS);
    this.#timer = setTimeout(() => this.start(), untilNextMs).unref();
  }

  stop(): void {
    clearTimeout(this.#timer);
  }

  /**
   * Attributes what was counted since the last sample to the second that has ended, and none to any that were missed. If the clock was set
   * back, earlier seconds keep their distance to now.
   */
  sample(nowMs: number): void {
    const ended = Math.floor(nowMs / SECOND_MS) - 1;
    if (ended < this.#second - 1) this.#setBack(ended - 1);
    const missed = ended - this.#second - 1;
    if (missed < 0) return;
    const totals = this.#sources.metrics.requestTotals();
    const empty: Second = { counts: SERIES.map(() => 0), durations: [] };
    const passed = Array.from({ length: Math.min(missed, PULSE_SECONDS) }, () => empty);
    const counted = difference(totals, this.#totals);
    this.#seconds = [...this.#seconds, ...passed, counted].slice(-PULSE_SECONDS);
    for (const range of this.#history) range.add(ended, counted);
    this.#calls = [...this.#calls, this.#sources.metrics.storeTotals().calls].slice(-STORE_SECONDS - 1);
    this.#totals = totals;
    this.#second = ended;
  }

  #setBack(second: number): void {
    this.#second = second;
    for (const range of this.#history) range.setBack(second + 1);
  }

  /** As of the last sample, except for the totals. */
  pulse(): Pulse {
    const { metrics, storeKind, storeHealth, share, refusals, changes, liveLimits, clock } = this.#sources;
    const ends = [...this.#sources.certificateEnds.values()];
    const { offsetMs } = clock;
    const shared = (ownMs: number) => Math.max(0, Math.round(ownMs - (offsetMs ?? 0)));
    const { durations, ...totals } = metrics.requestTotals();
    const { breaker, unsafeSettings } = metrics.storeTotals();
    return {
      format: 1,
      name: hostname(),
      startedAtMs: shared(this.#startedAtMs),
      adminUrl: this.adminUrl,
      isReady: this.#sources.isReady(),
      limits: metrics.limitsVersion(),
      operations: metrics.operationsVersion(),
      version,
      memoryBytes: residentBytes(),
      certificateEndsMs: ends.length === 0 ? null : Math.min(...ends),
      journalLagSeconds: metrics.journalLagSeconds() ?? null,
      changes: [...changes.latest],
      queues: metrics.upstreamsInDemand().slice(0, MOST_QUEUES).map(queueOf),
      liveLimits: liveLimits(),
      clockOffsetMs: offsetMs === undefined ? null : Math.round(offsetMs),
      takenAtMs: clock.nowMs(),
      store: {
        kind: storeKind,
        breaker,
        unsafeSettings,
        p99Ms: this.#storeP99Ms(),
        ...storeHealth.last,
        share: share === undefined ? null : { replicas: share.count, ageSeconds: share.ageSeconds ?? null },
      },
      totals,
      second: Math.round(shared(this.#second * SECOND_MS) / SECOND_MS),
      seconds: this.#seconds,
      history: this.#history.map((range) => range.slices(offsetMs ?? 0)),
      refusals: refusals.latest(),
    };
  }

  #storeP99Ms(): number | null {
    const [first = []] = this.#calls;
    const last = this.#calls.at(-1) ?? [];
    return quantileMs(minus(last, first), 0.99);
  }
}

/** Null if it cannot be read: Linux reports it in a file, and all file descriptors may be in use. */
function residentBytes(): number | null {
  try {
    return process.memoryUsage.rss();
  } catch {
    return null;
  }
}

/** Whole milliseconds, because this is published every second. */
function queueOf(upstream: UpstreamQueue): Pulse['queues'][number] {
  const { prefix, waiting, present, limit } = upstream;
  const waitingPayers = upstream
    .waitingPayers(NAMED_PAYERS)
    .map((payer) => ({ ...payer, longestMs: Math.round(payer.longestMs) }));
  const presentPayers = upstream.presentPayers(NAMED_PAYERS);
  return {
    prefix: plainLine(prefix || '/', LONGEST_PREFIX),
    waiting,
    present,
    limit,
    waitingPayers,
    presentPayers,
  };
}

function difference(after: RequestTotals, before: RequestTotals): Second {
  const durations = minus(after.durations, before.durations);
  const used = durations.findLastIndex((count) => count > 0) + 1;
  return { counts: SERIES.map((one) => after[one] - before[one]), durations: durations.slice(0, used) };
}

function minus(after: readonly number[], before: readonly number[]): number[] {
  return after.map((count, index) => count - (before[index] ?? 0));
}

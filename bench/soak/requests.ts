import { FullestSeconds } from '../k6/fullest-seconds.ts';
import { runK6, type Sample } from '../k6/k6.ts';
import { percentile } from '../lab/turns.ts';
import type { Limits } from '../load/two-buckets.ts';
import { SLOW_PATH } from '../load/upstream.ts';

/** What the clients saw in one interval. */
export interface Seen {
  readonly requests: number;
  readonly refused: number;
  /** Served without being counted. */
  readonly degraded: number;
  /** When a check of a status, a header or a body failed, in Unix milliseconds. A 502 fails three. */
  readonly failedAtMs: readonly number[];
  /** Statuses other than 200 and 429, with their counts; 0 is a request without a response. */
  readonly statuses: Readonly<Record<string, number>>;
  /** Points of the requests that were admitted and counted. */
  readonly points: number;
  /** The iterations that k6 had no free client for. */
  readonly dropped: number;
  /** Without the answers that the upstream sends slowly, and likewise below. */
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
  /** The fullest second over the limit in force. */
  readonly fullest: Limits;
}

export interface Requests {
  /** What has been seen since the last call. */
  take(): Seen;
  /** k6's exit code: not 0 where a threshold was broken. */
  readonly ended: Promise<number>;
}

/** Runs k6's soak script and counts the samples that it prints. */
export function startRequests(env: Readonly<Record<string, string>>): Requests {
  const counts = new Counts();
  const ended = runK6('soak', env, (sample) => counts.add(sample));
  return { take: () => counts.take(), ended };
}

const NOTHING = { requests: 0, refused: 0, degraded: 0, dropped: 0, points: 0 };

class Counts {
  readonly #seconds = new FullestSeconds();
  #durations: number[] = [];
  #statuses: Record<string, number> = {};
  #counters = { ...NOTHING };
  #failedAtMs: number[] = [];

  add(sample: Sample): void {
    const {
      metric,
      data: { time, value, tags },
    } = sample;
    if (metric === 'http_req_duration') this.#addResponse(value, tags);
    else if (metric === 'refused') this.#counters.refused += value;
    else if (metric === 'degraded') this.#counters.degraded += value;
    else if (metric === 'dropped_iterations') this.#counters.dropped += value;
    else if (metric === 'checks' && value === 0) this.#failedAtMs.push(Date.parse(time));
    else {
      this.#counters.points += Number(tags.cost ?? 0);
      this.#seconds.add(sample);
    }
  }

  #addResponse(durationMs: number, { name, status = '0' }: Sample['data']['tags']): void {
    this.#counters.requests += 1;
    if (!name?.endsWith(SLOW_PATH)) this.#durations.push(durationMs);
    if (status !== '200' && status !== '429') this.#statuses[status] = (this.#statuses[status] ?? 0) + 1;
  }

  take(): Seen {
    const at = (share: number) => percentile(this.#durations, share);
    const seen = {
      ...this.#counters,
      failedAtMs: this.#failedAtMs,
      statuses: this.#statuses,
      p50Ms: at(0.5),
      p99Ms: at(0.99),
      maxMs: at(1),
      fullest: this.#seconds.take(),
    };
    this.#durations = [];
    this.#statuses = {};
    this.#counters = { ...NOTHING };
    this.#failedAtMs = [];
    return seen;
  }
}

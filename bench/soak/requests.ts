/** Runs k6's soak script and follows the samples that it prints. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { FullestWindows, type Limits } from './windows.ts';

const SCRIPT = fileURLToPath(new URL('../k6/soak.ts', import.meta.url));

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
  /** The iterations that k6 had no free client for. */
  readonly dropped: number;
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

/** A line of `k6 run --out json`. */
interface Sample {
  readonly type: string;
  readonly metric: string;
  readonly data: { readonly time: string; readonly value: number; readonly tags: Record<string, string> };
}

export function startRequests(k6: string, env: Record<string, string>): Requests {
  const variables = Object.entries(env).flatMap(([key, value]) => ['-e', `${key}=${value}`]);
  const options = ['--quiet', '--no-usage-report', '--system-tags', 'status,check', '--out', 'json=-'];
  const child = spawn(k6, ['run', ...options, ...variables, SCRIPT], {
    stdio: ['ignore', 'pipe', 'inherit'],
    detached: true,
  });
  process.once('exit', () => child.kill('SIGKILL'));
  const counts = new Counts();
  const lines = createInterface({ input: child.stdout });
  lines.on('line', (line) => {
    if (!line.startsWith('{')) process.stdout.write(`${line}\n`);
    else if (Counts.wants(line)) counts.add(JSON.parse(line));
  });
  const read = once(lines, 'close');
  const ended = once(child, 'exit').then(async ([code]) => {
    await read;
    return code ?? 1;
  });
  return { take: () => counts.take(), ended };
}

const METRICS =
  /^\{"metric":"(?:http_req_duration|admitted_from_ms|refused|degraded|checks|dropped_iterations)","type":"Point"/;

class Counts {
  readonly #windows = new FullestWindows();
  #durations: number[] = [];
  #statuses: Record<string, number> = {};
  #counters = { refused: 0, degraded: 0, dropped: 0 };
  #failedAtMs: number[] = [];

  /** Whether a line is worth parsing: k6 prints a dozen for each request. */
  static wants(line: string): boolean {
    return METRICS.test(line);
  }

  add({ metric, data: { time, value, tags } }: Sample): void {
    if (metric === 'http_req_duration') this.#addResponse(value, tags.status ?? '0');
    else if (metric === 'refused') this.#counters.refused += value;
    else if (metric === 'degraded') this.#counters.degraded += value;
    else if (metric === 'dropped_iterations') this.#counters.dropped += value;
    else if (metric === 'checks') {
      if (value === 0) this.#failedAtMs.push(Date.parse(time));
    } else {
      const limits = { account: Number(tags.accountLimit), organization: Number(tags.organizationLimit) };
      const points = Number(tags.cost);
      this.#windows.add({
        account: Number(tags.account),
        fromMs: value,
        toMs: Date.parse(time),
        points,
        limits,
      });
    }
  }

  #addResponse(durationMs: number, status: string): void {
    this.#durations.push(durationMs);
    if (status !== '200' && status !== '429') this.#statuses[status] = (this.#statuses[status] ?? 0) + 1;
  }

  take(): Seen {
    const sorted = this.#durations.sort((one, other) => one - other);
    const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
    const seen = {
      requests: sorted.length,
      ...this.#counters,
      failedAtMs: this.#failedAtMs,
      statuses: this.#statuses,
      p50Ms: at(0.5),
      p99Ms: at(0.99),
      maxMs: at(1),
      fullest: this.#windows.take(),
    };
    this.#durations = [];
    this.#statuses = {};
    this.#counters = { refused: 0, degraded: 0, dropped: 0 };
    this.#failedAtMs = [];
    return seen;
  }
}

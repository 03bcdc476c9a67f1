import { setTimeout as pause } from 'node:timers/promises';
import { bucketKey } from '../../src/store/keys.ts';
import type { Decision, Store } from '../../src/store/store.ts';

export interface Sample {
  readonly sentMs: number;
  readonly latencyMs: number;
  readonly decision: Decision;
}

const INTERVAL_MS = 5;

/** Charges of many accounts, one each 5 ms, whatever comes back: what a gateway sees of its store. */
export class Load {
  readonly samples: Sample[] = [];
  readonly #store: Store;
  readonly #prefix: string;
  readonly #timer: NodeJS.Timeout;
  #sent = 0;

  constructor(store: Store, prefix: string) {
    this.#store = store;
    this.#prefix = prefix;
    this.#timer = setInterval(() => void this.#send(), INTERVAL_MS);
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** Resolves when that many charges in a row, sent after the moment, were counted, or uncounted. */
  async until(isCounted: boolean, afterMs: number, count: number, giveUpMs = 30_000): Promise<Sample> {
    const endMs = performance.now() + giveUpMs;
    for (;;) {
      const first = this.#streak(isCounted, afterMs, count);
      if (first !== undefined) return first;
      if (performance.now() > endMs) {
        const last = this.samples.at(-1)?.decision;
        throw new Error(`never ${isCounted ? 'counted' : 'uncounted'}: ${JSON.stringify(last)}`);
      }
      await pause(INTERVAL_MS);
    }
  }

  /** The first sample of the first streak of that length. */
  #streak(isCounted: boolean, afterMs: number, count: number): Sample | undefined {
    const later = this.samples.filter(({ sentMs }) => sentMs >= afterMs);
    let start = 0;
    for (const [index, { decision }] of later.entries()) {
      if ((decision.outcome !== 'uncounted') !== isCounted) start = index + 1;
      else if (index - start + 1 >= count) return later[start];
    }
    return undefined;
  }

  /** Samples sent between two moments. */
  between(startMs: number, endMs: number): Sample[] {
    return this.samples.filter(({ sentMs }) => sentMs >= startMs && sentMs < endMs);
  }

  async #send(): Promise<void> {
    const account = `acct_${this.#sent++ % 50}`;
    const tag = `org_${this.#sent % 7}`;
    const buckets = [
      { key: bucketKey(this.#prefix, tag, 'account-read', account), limit: 1_000_000, windowSeconds: 1 },
      { key: bucketKey(this.#prefix, tag, 'organization-read', tag), limit: 1_000_000, windowSeconds: 1 },
    ];
    const sentMs = performance.now();
    const decision = await this.#store.charge({ buckets, cost: 1 });
    this.samples.push({ sentMs, latencyMs: performance.now() - sentMs, decision });
  }
}

export function percentile(latencies: readonly number[], share: number): number {
  const sorted = latencies.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
}

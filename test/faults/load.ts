import { setTimeout as pause } from 'node:timers/promises';
import { bucketKey } from '../../src/store/keys.ts';
import type { Charge, Decision, Store } from '../../src/store/store.ts';

export interface Sample {
  readonly number: number;
  readonly sentMs: number;
  readonly latencyMs: number;
  /** How many charges were sent while it waited: its wait in units of 5 ms, without the pauses of a process on a busy machine. */
  readonly overtakenBy: number;
  readonly decision: Decision;
}

export const INTERVAL_MS = 5;
/** Looking through all samples as often as one is added would take more time than the charges. */
const LOOK_MS = 25;

/** Charges, one each 5 ms, whatever comes back: what a gateway sees of its store. */
export class Load {
  readonly samples: Sample[] = [];
  readonly #store: Store;
  readonly #next: (sent: number) => Charge;
  readonly #timer: NodeJS.Timeout;
  #sent = 0;

  /** @param next the charge after so many others */
  constructor(store: Store, next: (sent: number) => Charge) {
    this.#store = store;
    this.#next = next;
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
        throw new Error(`not ${isCounted ? 'counted' : 'uncounted'} for long: ${this.#lately(afterMs)}`);
      }
      await pause(LOOK_MS);
    }
  }

  /** Resolves when each of the reasons was seen: a busy machine may take longer than the outage to try the store again. */
  async untilReasons(expected: readonly string[], giveUpMs = 90_000): Promise<void> {
    const endMs = performance.now() + giveUpMs;
    for (;;) {
      const seen = this.reasons;
      if (expected.every((reason) => seen.includes(reason))) return;
      if (performance.now() > endMs) throw new Error(`expected the reasons ${expected}, saw ${seen}`);
      await pause(LOOK_MS);
    }
  }

  /** Why charges went uncounted so far. */
  get reasons(): string[] {
    return reasonsOf(this.samples);
  }

  /** What the last charges after the moment met, each with its number, because charges take their groups in turn. */
  #lately(afterMs: number): string {
    const later = this.samples.filter(({ sentMs }) => sentMs >= afterMs).slice(-100);
    return later
      .map(({ number, decision }) =>
        decision.outcome === 'uncounted' ? `${number} ${decision.reason}` : `${number}`,
      )
      .join(', ');
  }

  /** The first sample of the first streak of that length. */
  #streak(isCounted: boolean, afterMs: number, count: number): Sample | undefined {
    const later = this.samples.filter(({ sentMs }) => sentMs >= afterMs);
    let start = 0;
    for (const [index, { decision }] of later.entries()) {
      if (isCountedBy(decision) !== isCounted) start = index + 1;
      else if (index - start + 1 >= count) return later[start];
    }
    return undefined;
  }

  /** Samples sent between two moments. */
  between(startMs: number, endMs: number): Sample[] {
    return this.samples.filter(({ sentMs }) => sentMs >= startMs && sentMs < endMs);
  }

  async #send(): Promise<void> {
    const number = this.#sent++;
    const charge = this.#next(number);
    const sentMs = performance.now();
    const decision = await this.#store.charge(charge);
    const overtakenBy = this.#sent - number - 1;
    this.samples.push({ number, sentMs, latencyMs: performance.now() - sentMs, overtakenBy, decision });
  }
}

/** Whether the store decided, and not this replica in its place. */
export function isCountedBy(decision: Decision): boolean {
  if (decision.outcome === 'denied') return decision.degraded === undefined;
  return decision.outcome === 'admitted';
}

/** Charges of many Accounts that are far from their limits. */
export function manyAccounts(prefix: string): (sent: number) => Charge {
  return (sent) => {
    const account = `acct_${sent % 50}`;
    const tag = `org_${(sent + 1) % 7}`;
    const buckets = [
      { key: bucketKey(prefix, tag, 'account-read', account), limit: 1_000_000, windowSeconds: 1 },
      { key: bucketKey(prefix, tag, 'organization-read', tag), limit: 1_000_000, windowSeconds: 1 },
    ];
    return { buckets, cost: 1 };
  };
}

/** Charges of one Account that floods: 200 a second, where this many fit. */
export function oneAccount(prefix: string, limit: number): () => Charge {
  const key = bucketKey(prefix, 'flood', 'account-read', 'flood');
  return () => ({ buckets: [{ key, limit, windowSeconds: 1 }], cost: 1 });
}

/** The most samples that certainly were decided within one window of a second. */
export function fullestSecond(samples: readonly Sample[]): number {
  let fullest = 0;
  for (const { sentMs: startMs } of samples) {
    const inside = samples.filter(
      ({ sentMs, latencyMs }) => sentMs >= startMs && sentMs + latencyMs < startMs + 1_000,
    );
    fullest = Math.max(fullest, inside.length);
  }
  return fullest;
}

export function percentile(latencies: readonly number[], share: number): number {
  const sorted = latencies.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
}

/** Why they were not counted, each reason once. */
export function reasonsOf(samples: readonly Sample[]): string[] {
  const reasons = samples.map(({ decision }) => (decision.outcome === 'uncounted' ? decision.reason : ''));
  return [...new Set(reasons)].filter((reason) => reason !== '').sort();
}

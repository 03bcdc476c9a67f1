import { isOfOneCharge, type Store, trialBucket, type UncountedReason } from '../../store/store.ts';
import { unknownSince } from '../freshness.ts';

/** Asks the store about a bucket that nothing is charged to, whatever its key holds. Returns why there was no answer. */
export async function askStore(
  store: Pick<Store, 'peek'>,
  keyPrefix: string,
): Promise<UncountedReason | undefined> {
  const decision = await store.peek({ buckets: [trialBucket(`${keyPrefix}:1:start`)], cost: 1 });
  return decision.outcome === 'uncounted' && !isOfOneCharge(decision.reason) ? decision.reason : undefined;
}

/** Whether the store answers. It is asked, because without requests nobody else notices that it does not. */
export class StoreHealth {
  readonly #sources;
  #answeredAtMs: number;
  #measuredAtMs: number;
  #problem: UncountedReason | null = null;
  #isAsking = false;

  constructor(sources: {
    readonly store: Pick<Store, 'peek'>;
    readonly keyPrefix: string;
    /** Unix time by the clock of Redis. */
    nowMs(): number;
    /** Called after each measurement. A store that has missed a single one, `hasMissed`, still counts as answering. */
    measured(isAnswering: boolean, hasMissed: boolean): void;
  }) {
    this.#sources = sources;
    this.#answeredAtMs = sources.nowMs();
    this.#measuredAtMs = this.#answeredAtMs;
  }

  /** The last measurement. The problem is null until the store has missed two in a row: a single slow answer is no outage. */
  get last(): { readonly measuredAtMs: number; readonly problem: UncountedReason | null } {
    return { measuredAtMs: this.#measuredAtMs, problem: this.#problem };
  }

  /** Does nothing while an earlier measurement waits for the store. */
  async measure(): Promise<void> {
    if (this.#isAsking) return;
    this.#isAsking = true;
    const { store, keyPrefix, nowMs, measured } = this.#sources;
    const problem = await askStore(store, keyPrefix);
    this.#isAsking = false;
    this.#measuredAtMs = nowMs();
    if (problem === undefined) this.#answeredAtMs = this.#measuredAtMs;
    const isMissing = unknownSince(this.#answeredAtMs, this.#measuredAtMs) !== null;
    this.#problem = isMissing ? (problem ?? null) : null;
    measured(!isMissing, problem !== undefined);
  }
}

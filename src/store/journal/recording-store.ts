import { type Awaitable, andThenWith } from '../../domain/awaitable.ts';
import { monotonicUs } from '../../domain/clock.ts';
import {
  type BucketCharge,
  type BucketState,
  type Charge,
  costIn,
  type Decision,
  finalCostIn,
  isDurable,
  isRecordedBucket,
  type Settled,
  type Settlement,
  type Store,
} from '../store.ts';
import type { Journal } from './journal.ts';
import type { Recovery } from './recovery.ts';

/** A decision, and what is needed to record it. */
interface Recording {
  readonly charge: Charge;
  readonly journal: Journal;
  readonly clock: JournalClock;
}

/** Unix time of the store in µs. */
export interface JournalClock {
  nowUs(): number;
  /** Of a time that a decision has. */
  unixUs(chargedAtUs: number): number;
}

const nowUs = () => Date.now() * 1_000;

/** Of Redis, whose times are Unix times. */
export const UNIX_CLOCK: JournalClock = { nowUs, unixUs: (chargedAtUs) => chargedAtUs };

/** Of the memory store, whose times begin with the process. */
export const PROCESS_CLOCK: JournalClock = {
  nowUs,
  unixUs: (chargedAtUs) => nowUs() - (monotonicUs() - chargedAtUs),
};

/** A store whose decisions on durable limits are recorded. */
export class RecordingStore implements Store {
  readonly #store: Store;
  readonly #journal: Journal;
  readonly #clock: JournalClock;
  readonly #recovery: Pick<Recovery, 'close'> | undefined;

  constructor(store: Store, journal: Journal, clock: JournalClock, recovery?: Pick<Recovery, 'close'>) {
    this.#store = store;
    this.#journal = journal;
    this.#clock = clock;
    this.#recovery = recovery;
  }

  charge(charge: Charge): Awaitable<Decision> {
    const decision = this.#store.charge(charge);
    if (!isDurable(charge.buckets)) return decision;
    return andThenWith(decision, record, { charge, journal: this.#journal, clock: this.#clock });
  }

  peek(charge: Charge): Promise<Decision> {
    return this.#store.peek(charge);
  }

  settle(settlement: Settlement): Awaitable<Settled> {
    const settled = this.#store.settle(settlement);
    const { charge } = settlement;
    if (!isDurable(charge.buckets)) return settled;
    return andThenWith(settled, recordSettled, {
      settlement,
      charge,
      journal: this.#journal,
      clock: this.#clock,
    });
  }

  get slots() {
    return this.#store.slots;
  }

  /** The journal is closed last, because calls that are under way are recorded when they end. */
  async close(): Promise<void> {
    await this.#store.close();
    await this.#recovery?.close();
    await this.#journal.close();
  }
}

function record(decision: Decision, recording: Recording): Decision {
  if (decision.outcome === 'admitted') recordAdmitted(decision.chargedAtUs, recording);
  else if (decision.outcome === 'denied' && decision.degraded === undefined)
    recordDenied(decision.buckets, recording);
  return decision;
}

function recordAdmitted(
  chargedAtUs: number,
  { charge: { buckets, cost, operation = '' }, journal, clock }: Recording,
): void {
  const atUs = clock.unixUs(chargedAtUs);
  for (const bucket of buckets) {
    if (isRecordedBucket(bucket))
      journal.add(bucket, operation, atUs, { points: costIn(bucket, cost), requests: 1, refused: 0 });
  }
}

/** A refusal counts for the bucket that needs the longest wait, which the 429 names. */
function recordDenied(
  states: readonly (BucketState | undefined)[],
  { charge: { buckets, operation = '' }, journal, clock }: Recording,
): void {
  let longestUs = -1;
  let refusing: BucketCharge | undefined;
  for (let index = 0; index < buckets.length; index++) {
    const bucket = buckets[index];
    const waitUs = states[index]?.retryAfterUs ?? -1;
    if (bucket === undefined || bucket.shadow === true || waitUs <= longestUs) continue;
    [longestUs, refusing] = [waitUs, bucket];
  }
  if (refusing !== undefined && isRecordedBucket(refusing))
    journal.add(refusing, operation, clock.nowUs(), { points: 0, requests: 0, refused: 1 });
}

/** What was given back is subtracted from the minute of the charge, and what was added counts now, as in the store. */
function recordSettled(
  settled: Settled,
  { settlement, journal, clock }: Recording & { readonly settlement: Settlement },
): Settled {
  if (settled.outcome !== 'settled') return settled;
  const { charge, chargedAtUs } = settlement;
  const { buckets, cost, operation = '' } = charge;
  for (const bucket of buckets) {
    const points = finalCostIn(bucket, settlement) - costIn(bucket, cost);
    if (points === 0 || !isRecordedBucket(bucket)) continue;
    const atUs = points < 0 && chargedAtUs !== undefined ? clock.unixUs(chargedAtUs) : clock.nowUs();
    journal.add(bucket, operation, atUs, { points, requests: 0, refused: 0 });
  }
  return settled;
}

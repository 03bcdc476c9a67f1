import { isConcurrent } from '../in-flight/held-slots.ts';
import { LEASE_MS, type LeaseCall, type Statement } from '../in-flight/leases.ts';
import { type BucketCharge, type Charge, costIn } from '../store.ts';
import { bulkNumber, bulkString } from './script-call.ts';

/** A key outlives its window by half: more than the slot that its newest entry may still grow for. */
const LIFE_MS_PER_WINDOW_SECOND = 1500;
/** The script reads Redis TIME when it is given no other time, and keys live as long as their buckets say. */
const STORE_CLOCK = 0;
const USUAL_LIFE = 0;

/** What lua/charge.lua does. */
const PEEK = 0;
const CHARGE = 1;
const CHARGE_AND_CHECK_LIVES = 2;
const WITH_SLOTS = 3;

/** What a statement has given back is less: a renewal, each second, begins anew. */
const MOST_ENDED = 2 ** 20;

export interface BodyOptions {
  /** False to decide the same without spending. */
  readonly isSpending: boolean;
  /** True where another window may have given a key a shorter life than its bucket's. */
  readonly isCheckingLives?: boolean | undefined;
  /** What this replica states of its slots; undefined without slots, and for a peek. */
  readonly leases?: LeaseCall | undefined;
  /** A clock for tests. */
  readonly nowUs?: number;
  /** Life of a written key, for tests whose clock is slower than that of Redis; by default one and a half windows. */
  readonly lifeMs?: number | undefined;
}

/** A peek states nothing. */
const NOBODY: LeaseCall = { replica: '-'.repeat(16), asked: [], stated: [] };
const NOTHING: Omit<Statement, 'key'> = { generation: 0, ended: 0, base: 0 };

/** The arguments of one call of lua/charge.lua in RESP. */
export class ChargeBody {
  /** Bulk strings in `text`. */
  readonly argumentCount: number;
  readonly text: string;
  #keyCount = 0;
  #keys = '';
  #slotKeys = '';
  #count = 0;
  #arguments = '';

  constructor(charges: readonly Charge[], options: BodyOptions) {
    const encoded = charges.map(encodedOf);
    let slots = 0;
    for (const one of encoded) slots += one.slots.length;
    const hasSlots = slots > 0 || options.leases !== undefined;
    this.#add(options.nowUs ?? STORE_CLOCK);
    this.#add(modeOf(options) + (hasSlots ? WITH_SLOTS : 0));
    this.#add(options.lifeMs ?? USUAL_LIFE);
    if (hasSlots) this.#addWithSlots(encoded, slots, options.leases ?? NOBODY);
    else for (const one of encoded) this.#addBuckets(one);
    this.text = bulkNumber(this.#keyCount) + this.#keys + this.#slotKeys + this.#arguments;
    this.argumentCount = 1 + this.#keyCount + this.#count;
  }

  #addBuckets({ keyCount, keys, argumentCount, text }: EncodedCharge): void {
    this.#keyCount += keyCount;
    this.#keys += keys;
    this.#count += argumentCount;
    this.#arguments += text;
  }

  #addWithSlots(
    encoded: readonly EncodedCharge[],
    slots: number,
    { replica, asked, stated }: LeaseCall,
  ): void {
    this.#arguments += bulkString(replica);
    this.#count += 1;
    this.#add(LEASE_MS);
    this.#add(slots);
    this.#add(stated.length);
    for (const statement of stated) this.#addStatement(statement);
    let next = 0;
    for (const one of encoded) {
      this.#addBuckets(one);
      this.#add(one.slots.length);
      for (const { key, limit } of one.slots) {
        this.#slotKeys += key;
        this.#keyCount += 1;
        this.#arguments += limit;
        this.#count += 1;
        this.#addStatement(asked[next++] ?? NOTHING);
      }
    }
    for (const { key } of stated) {
      this.#slotKeys += bulkString(key);
      this.#keyCount += 1;
    }
  }

  #addStatement({ generation, ended, base }: Omit<Statement, 'key'>): void {
    this.#add(generation);
    this.#add(base * MOST_ENDED + Math.min(ended, MOST_ENDED - 1));
  }

  #add(value: number): void {
    this.#arguments += bulkNumber(value);
    this.#count += 1;
  }
}

/** What a charge always says, in RESP. */
interface EncodedCharge {
  readonly cost: number;
  readonly keyCount: number;
  readonly keys: string;
  readonly argumentCount: number;
  readonly text: string;
  /** What it says of its slots, besides their statements. */
  readonly slots: readonly { readonly key: string; readonly limit: string }[];
}

/** The last charge to the same buckets, which the requests of a payer share. Encoding it anew takes three times as long. */
const lastCharges = new WeakMap<readonly BucketCharge[], EncodedCharge>();

function encodedOf({ buckets, cost }: Charge): EncodedCharge {
  const last = lastCharges.get(buckets);
  if (last?.cost === cost) return last;
  const points = buckets.filter((bucket) => !isConcurrent(bucket));
  const numbers = points.flatMap((bucket) => [
    LIFE_MS_PER_WINDOW_SECOND * bucket.windowSeconds,
    costIn(bucket, cost),
    limitOf(bucket),
  ]);
  const encoded = {
    cost,
    keyCount: points.length,
    keys: flat(points.map(({ key }) => bulkString(key))),
    argumentCount: 1 + numbers.length,
    text: flat([points.length, ...numbers].map(bulkNumber)),
    slots: buckets
      .filter(isConcurrent)
      .map((bucket) => ({ key: flat([bulkString(bucket.key)]), limit: bulkNumber(limitOf(bucket)) })),
  };
  lastCharges.set(buckets, encoded);
  return encoded;
}

/** Joined in one piece: V8 makes a tree of strings that are added, and would walk through it in each call. */
function flat(parts: readonly string[]): string {
  return Buffer.from(parts.join(''), 'utf8').toString('utf8');
}

function modeOf({ isSpending, isCheckingLives }: BodyOptions): number {
  if (!isSpending) return PEEK;
  return isCheckingLives === true ? CHARGE_AND_CHECK_LIVES : CHARGE;
}

/** Negative for a shadow. */
function limitOf({ limit, shadow }: BucketCharge): number {
  return shadow === true ? -limit : limit;
}

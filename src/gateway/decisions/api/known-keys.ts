import { createHmac, timingSafeEqual } from 'node:crypto';
import type { RecordedMessage } from '../../../store/shared-store.ts';

/** A key as text, and the Unix time in ms until which receipts may be signed with it. */
const MESSAGE = /^([\w-]{43}) (\d{1,15})$/;

/** A receipt is valid for ten minutes. Times are rounded up to it, so that replicas write one message for a key and not one each. */
const LIFE_MS = 3_600_000;

/** More replicas than this do not make a key of their own after the store has lost its keys. */
const MOST_KEYS = 16;

/** Of a signature. Nobody guesses 128 bits. */
export const SIGNATURE_BYTES = 16;

/** The keys with which replicas of this store have signed receipts that may still be settled. */
export class KnownKeys {
  readonly #untilMs = new Map<string, number>();
  /** The key that this replica signs with. */
  #present: string | undefined;

  get present(): string | undefined {
    return this.#present;
  }

  /** Signs with this key from now on. */
  use(key: string, nowMs: number): void {
    this.#present = key;
    this.#learn(key, latestEndMs(nowMs), nowMs);
  }

  /** Takes a key from another replica. Returns whether it is new here. What is no key is ignored. */
  take(message: string, nowMs: number): boolean {
    const [, key, until] = MESSAGE.exec(message) ?? [];
    if (key === undefined) return false;
    const isNew = !this.#untilMs.has(key);
    this.#learn(key, Math.min(Number(until), latestEndMs(nowMs)), nowMs);
    return isNew && this.#untilMs.has(key);
  }

  /** The messages of keys that the record does not have for as long. */
  missingFrom(record: ReadonlySet<string>, nowMs: number): readonly RecordedMessage[] {
    const recorded = new Map<string, number>();
    for (const text of record) {
      const [, key = '', until = 0] = MESSAGE.exec(text) ?? [];
      recorded.set(key, Math.max(Number(until), recorded.get(key) ?? 0));
    }
    const all = [...this.#untilMs].filter(
      ([key, untilMs]) => untilMs > nowMs && untilMs > (recorded.get(key) ?? 0),
    );
    return all.map(([key, untilMs]) => ({ text: `${key} ${untilMs}`, untilMs }));
  }

  hasSigned(content: Buffer, signature: Buffer): boolean {
    for (const key of this.#untilMs.keys())
      if (timingSafeEqual(signatureOf(content, key), signature)) return true;
    return false;
  }

  #learn(key: string, untilMs: number, nowMs: number): void {
    this.#untilMs.set(key, Math.max(untilMs, this.#untilMs.get(key) ?? 0));
    for (const [known, endMs] of this.#untilMs)
      if (endMs <= nowMs && known !== this.#present) this.#untilMs.delete(known);
    if (this.#untilMs.size <= MOST_KEYS) return;
    const others = [...this.#untilMs].filter(([known]) => known !== this.#present);
    const [first] = others.toSorted(([, one], [, other]) => one - other);
    if (first !== undefined) this.#untilMs.delete(first[0]);
  }
}

/** How long a key is known from now on at most: a whole number, as messages have. */
function latestEndMs(nowMs: number): number {
  return LIFE_MS * Math.ceil(nowMs / LIFE_MS + 1);
}

export function signatureOf(content: Buffer, key: string): Buffer {
  return createHmac('sha256', key).update(content).digest().subarray(0, SIGNATURE_BYTES);
}

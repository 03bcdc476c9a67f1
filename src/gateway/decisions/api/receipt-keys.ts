import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import type { Logger } from 'pino';
import { backoffMs } from '../../../domain/backoff.ts';
import { pace } from '../../../domain/pace.ts';
import type { Agreement, SharedStore } from '../../../store/shared-store.ts';

/** Of a key, before it is text. */
const KEY_BYTES = 32;
/** The replicas of a fleet that has been away for longer agree on another key. No receipt is as old. */
const KEY_LIFE_MS = 86_400_000;
/** The present key, and one that was used before the store lost it. */
const KEYS_KEPT = 2;
/** The first receipt waits this long for the key. */
const FIRST_WAIT_MS = 1_000;
const FIRST_LOOK_MS = 20;

/** Of a signature. Nobody guesses 128 bits. */
export const SIGNATURE_BYTES = 16;

/**
 * Signs receipts with a key that all replicas of a store share, so that each of them recognizes the receipts of the others. The first
 * replica makes the key, and any replica puts it back if the store has lost it. The store is first asked when a receipt is needed. While
 * the key is unknown, there are no receipts.
 */
export class ReceiptKeys {
  readonly #shared: SharedStore | undefined;
  readonly #log: Logger;
  #agreement: Agreement | undefined;
  /** The present one first. */
  #keys: readonly string[] = [];
  #first: Promise<void> | undefined;
  #reading: Promise<void> | undefined;
  #readMs = Number.NEGATIVE_INFINITY;
  #failures = 0;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  /** @param shared undefined if this process is the only replica */
  constructor(shared: SharedStore | undefined, log: Logger) {
    this.#shared = shared;
    this.#log = log;
    if (shared === undefined) this.#keys = [newKey()];
  }

  /** Whether receipts can be signed. Waits for the first answer of the store, for a moment at most. */
  async areKnown(): Promise<boolean> {
    if (this.#keys.length > 0) return true;
    this.#first ??= this.#readFirst();
    await this.#first;
    return this.#keys.length > 0;
  }

  /** @throws TypeError if the key is unknown */
  sign(content: Buffer): Buffer {
    const [key] = this.#keys;
    if (key === undefined) throw new TypeError('the key of receipts is unknown');
    return signatureOf(content, key);
  }

  /**
   * Whether a replica of this store has signed the content. If it seems that none has, the key is read again, once in a while: the store may
   * have lost it. Undefined if the key is unknown.
   */
  async isSigned(content: Buffer, signature: Buffer): Promise<boolean | undefined> {
    if (!(await this.areKnown())) return undefined;
    if (this.#matches(content, signature)) return true;
    const isRecent = performance.now() - this.#readMs < pace.receiptKeyRereadMs;
    if (this.#shared === undefined || isRecent) return false;
    await this.#read();
    return this.#matches(content, signature);
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#agreement?.close();
  }

  #matches(content: Buffer, signature: Buffer): boolean {
    return this.#keys.some((key) => timingSafeEqual(signatureOf(content, key), signature));
  }

  /** The connection may have been opened for this. */
  async #readFirst(): Promise<void> {
    const giveUpMs = performance.now() + FIRST_WAIT_MS;
    for (;;) {
      await this.#read();
      if (this.#keys.length > 0 || this.#isClosed || performance.now() > giveUpMs) return;
      await wait(FIRST_LOOK_MS);
    }
  }

  #read(): Promise<void> {
    this.#reading ??= this.#agree().finally(() => {
      this.#reading = undefined;
    });
    return this.#reading;
  }

  async #agree(): Promise<void> {
    clearTimeout(this.#timer);
    this.#readMs = performance.now();
    try {
      this.#agreement ??= this.#shared?.openAgreement('receipts');
      const key = await this.#agreement?.text(this.#keys[0] ?? newKey(), KEY_LIFE_MS);
      if (key === undefined) return;
      this.#failures = 0;
      this.#keys = [key, ...this.#keys.filter((known) => known !== key)].slice(0, KEYS_KEPT);
    } catch (error) {
      this.#failures += 1;
      if (this.#keys.length === 0 && this.#first !== undefined && this.#failures % 20 === 0)
        this.#log.warn({ err: error }, 'receipts cannot be signed: the store does not give their key');
    }
    if (this.#isClosed) return;
    const nextMs = this.#failures === 0 ? pace.receiptKeyMs : backoffMs(pace.settlements, this.#failures);
    this.#timer = setTimeout(() => void this.#read(), nextMs).unref();
  }
}

function newKey(): string {
  return randomBytes(KEY_BYTES).toString('base64url');
}

function signatureOf(content: Buffer, key: string): Buffer {
  return createHmac('sha256', key).update(content).digest().subarray(0, SIGNATURE_BYTES);
}

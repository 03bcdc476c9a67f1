import { randomBytes } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import type { Logger } from 'pino';
import { backoffMs } from '../../../domain/backoff.ts';
import { pace } from '../../../domain/pace.ts';
import type { Agreement, Channel, ClockReading, SharedStore } from '../../../store/shared-store.ts';
import { KnownKeys, signatureOf } from './known-keys.ts';

/** Of a key, before it is text. */
const KEY_BYTES = 32;
/** The replicas of a fleet that has been away for longer agree on another key. No receipt is as old. */
const KEY_LIFE_MS = 86_400_000;
/** The first receipt waits this long for the key. */
const FIRST_WAIT_MS = 1_000;
const FIRST_LOOK_MS = 20;
/** The channel on which replicas share the keys that sign receipts. */
const TOPIC = 'receipt-keys';
/** An unknown receipt waits this long for a connection to the store. */
const LOOK_MS = 500;

/**
 * Signs receipts with a key that all replicas of a store share. The first replica makes the key, and any replica puts it back if the store
 * has lost it. A replica that starts in between makes another key. So replicas also record every key that receipts may be signed with, and
 * each of them recognizes the receipts of all. The store is first asked when a receipt is needed. While the key is unknown, there are no
 * receipts.
 */
export class ReceiptKeys {
  readonly #shared: SharedStore | undefined;
  readonly #log: Logger;
  readonly #keys = new KnownKeys();
  #agreement: Agreement | undefined;
  #channel: Channel | undefined;
  #clock: ClockReading | undefined;
  #first: Promise<void> | undefined;
  #reading: Promise<void> | undefined;
  #looking: Promise<void> | undefined;
  /** When the record of keys was last read because of an unknown receipt. */
  #lookedMs = Number.NEGATIVE_INFINITY;
  #hasLooked = true;
  /** When this replica last made a key. If the store has lost its keys, other replicas may not have received it yet. */
  #madeMs = Number.NEGATIVE_INFINITY;
  #failures = 0;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  /** @param shared undefined if this process is the only replica */
  constructor(shared: SharedStore | undefined, log: Logger) {
    this.#shared = shared;
    this.#log = log;
    if (shared === undefined) this.#keys.use(newKey(), Date.now());
  }

  /** Whether receipts can be signed. Waits for the first answer of the store, for a moment at most. */
  async areKnown(): Promise<boolean> {
    if (this.#keys.present !== undefined) return true;
    this.#first ??= this.#readFirst();
    await this.#first;
    return this.#keys.present !== undefined;
  }

  /** @throws TypeError if the key is unknown */
  sign(content: Buffer): Buffer {
    const { present } = this.#keys;
    if (present === undefined) throw new TypeError('the key of receipts is unknown');
    return signatureOf(content, present);
  }

  /**
   * Whether a replica of this store has signed the content. If it seems that none has, the keys of the others are read again, once in a
   * while. A replica that has just made a key waits a moment for theirs. Undefined if the keys are unknown.
   */
  async isSigned(content: Buffer, signature: Buffer): Promise<boolean | undefined> {
    if (!(await this.areKnown())) return undefined;
    if (this.#keys.hasSigned(content, signature)) return true;
    if (this.#shared === undefined) return false;
    const isDue = performance.now() - this.#lookedMs > pace.receiptKeyRereadMs;
    if (isDue || this.#looking !== undefined) {
      this.#lookedMs = performance.now();
      await Promise.all([this.#look(), this.#read()]);
    }
    const restMs = this.#madeMs + FIRST_WAIT_MS - performance.now();
    if (restMs > 0 && !this.#keys.hasSigned(content, signature)) {
      await wait(restMs);
      await this.#look();
    }
    if (this.#keys.hasSigned(content, signature)) return true;
    return this.#hasLooked ? false : undefined;
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#agreement?.close();
    this.#channel?.close();
  }

  /** By the store's clock, once it is known. */
  #nowMs(): number {
    if (this.#clock === undefined) return Date.now();
    return this.#clock.nowMs + performance.now() - this.#clock.answeredMs;
  }

  /** The connection may have been opened for this. */
  async #readFirst(): Promise<void> {
    const giveUpMs = performance.now() + FIRST_WAIT_MS;
    for (;;) {
      await this.#read();
      if (this.#keys.present !== undefined || this.#isClosed || performance.now() > giveUpMs) return;
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
    try {
      this.#agreement ??= this.#shared?.openAgreement('receipts');
      const { present } = this.#keys;
      const proposed = present ?? newKey();
      const key = await this.#agreement?.text(proposed, KEY_LIFE_MS);
      if (key === undefined) return;
      this.#failures = 0;
      this.#keys.use(key, this.#nowMs());
      if (key !== present) {
        if (key === proposed) this.#madeMs = performance.now();
        this.#listen();
        await this.#look();
      }
    } catch (error) {
      this.#failures += 1;
      if (this.#keys.present === undefined && this.#first !== undefined && this.#failures % 20 === 0)
        this.#log.warn({ err: error }, 'receipts cannot be signed: the store does not give their key');
    }
    if (this.#isClosed) return;
    const nextMs = this.#failures === 0 ? pace.receiptKeyMs : backoffMs(pace.settlements, this.#failures);
    this.#timer = setTimeout(() => void this.#read(), nextMs).unref();
  }

  /** Subscribes to the keys of other replicas. Keys that the store has lost are recorded again within a few seconds. */
  #listen(): void {
    if (this.#isClosed) return;
    this.#channel ??= this.#shared?.subscribe(TOPIC, {
      message: (text) => {
        // The replica that made it may have found none of the others in the store.
        if (this.#keys.take(text, this.#nowMs())) void this.#look();
      },
      connected() {},
      time: (reading) => {
        this.#clock = reading;
      },
      missingFrom: (record) => this.#keys.missingFrom(record, this.#nowMs()),
      restored: () => void this.#read(),
    });
  }

  /** Reads the keys of all replicas, and publishes the ones that the record lacks. Never rejects. */
  #look(): Promise<void> {
    this.#looking ??= this.#exchange().finally(() => {
      this.#looking = undefined;
    });
    return this.#looking;
  }

  async #exchange(): Promise<void> {
    this.#hasLooked = false;
    try {
      await this.#shared?.withRecord(
        TOPIC,
        async (record) => {
          this.#clock = await record.time();
          const texts = await record.read();
          this.#hasLooked = true;
          for (const text of texts) this.#keys.take(text, this.#nowMs());
          const missing = this.#keys.missingFrom(new Set(texts), this.#nowMs());
          if (missing.length > 0) await record.publish(missing);
        },
        LOOK_MS,
      );
    } catch {
      // The subscription looks again.
    }
  }
}

function newKey(): string {
  return randomBytes(KEY_BYTES).toString('base64url');
}

import { setImmediate } from 'node:timers/promises';
import { type StoreObserver, silentObserver } from '../../observer.ts';
import { type Channel, type ChannelListener, LOOK_MS, type RecordedMessage } from '../../shared-store.ts';
import type { RedisConnection } from '../connection/connection.ts';
import { openAnyLink, type RemoteStoreSettings } from '../connection/link.ts';
import { isRefusal } from '../run-script.ts';
import type { Reading, WrongTypeFound } from './read-shared.ts';
import { RedisRecord } from './record.ts';

const RETRY_MS = 250;

/** At most this many messages are written again per read; the others follow with the next. */
const MOST_RESTORED = 1_000;

/** Messages of the record that are handled between two turns of the event loop. */
const PER_TURN = 16;

/** A missing connection is a problem only after this time, because connecting takes a moment. */
const FIRST_CONTACT_MS = 1_000;

/**
 * Subscribes to a Redis channel, and reads the record of unexpired messages at every connection and every few seconds. A message
 * may arrive more than once, and late by at most the time between two reads.
 */
export function subscribe(
  settings: RemoteStoreSettings,
  name: string,
  listener: ChannelListener,
  wrongTypeFound: WrongTypeFound = () => {},
): Channel {
  return new Subscription(settings, name, listener, wrongTypeFound);
}

class Subscription implements Channel {
  readonly subscribed: Promise<void>;
  readonly #name: string;
  readonly #listener: ChannelListener;
  readonly #wrongTypeFound: WrongTypeFound;
  readonly #subscriber: RedisConnection;
  /** In RESP2 a subscribed connection cannot read anything else. */
  readonly #reader: RedisConnection;
  #receivedAll: () => void = () => {};
  #timer: NodeJS.Timeout | undefined;
  #hasTime = false;
  /** Undefined before the first contact. */
  #state: { readonly isConnected: boolean; readonly problem: string | undefined } | undefined;
  /** Why Redis could not be reached since the last successful read. */
  #problem: string | undefined;
  readonly #openedMs = performance.now();
  #isClosed = false;

  constructor(
    settings: RemoteStoreSettings,
    name: string,
    listener: ChannelListener,
    wrongTypeFound: WrongTypeFound,
  ) {
    this.#name = name;
    this.#listener = listener;
    this.#wrongTypeFound = wrongTypeFound;
    this.subscribed = new Promise((resolve) => {
      this.#receivedAll = resolve;
    });
    const events = {
      ready: () => this.#lookIn(0),
      lost: () => this.#connected(false, this.#problem ?? 'the connection was lost'),
    };
    const observer: StoreObserver = {
      ...silentObserver,
      connectionFailed: (_reason, message) => {
        this.#problem = message;
      },
    };
    this.#subscriber = openAnyLink(settings, events, observer);
    this.#reader = openAnyLink(settings, events, observer);
    this.#subscriber.client.on('message', (channel: string, text: string) => {
      if (channel === name) this.#call(() => listener.message(text));
    });
    this.#lookIn(RETRY_MS);
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#subscriber.close();
    this.#reader.close();
    this.#receivedAll();
  }

  #lookIn(delayMs: number): void {
    clearTimeout(this.#timer);
    if (!this.#isClosed) this.#timer = setTimeout(() => void this.#look(), delayMs).unref();
  }

  async #look(): Promise<void> {
    try {
      const record = new RedisRecord(this.#reader.client, this.#name, this.#wrongTypeFound);
      if (!this.#hasTime) this.#time(await record.time());
      const refusal = await this.#subscribe();
      const held = await this.#read(record);
      this.#problem = undefined;
      this.#connected(true, refusal);
      this.#receivedAll();
      await this.#restore(record, held);
      this.#lookIn(LOOK_MS);
    } catch (error) {
      this.#connected(false, this.#problem ?? (error instanceof Error ? error.message : String(error)));
      this.#lookIn(RETRY_MS);
    }
  }

  /** Subscribing again is harmless, and shows whether the connection works. Returns the reason if Redis refuses. */
  async #subscribe(): Promise<string | undefined> {
    try {
      await this.#subscriber.client.subscribe(this.#name);
      return undefined;
    } catch (error) {
      if (isRefusal(error) && error.message.startsWith('NOPERM')) return error.message;
      throw error;
    }
  }

  /** Delivers what the record holds, and yields to requests in between. */
  async #read(record: RedisRecord): Promise<ReadonlySet<string>> {
    const held = new Set<string>();
    for await (const reading of record.readings()) {
      this.#time(reading);
      if (reading.leftOut > 0) this.#call(() => this.#listener.leftOut?.(reading.leftOut));
      for (const [index, text] of reading.members.entries()) {
        held.add(text);
        this.#call(() => this.#listener.message(text));
        if (index % PER_TURN === 0) await setImmediate();
      }
    }
    return held;
  }

  #time(reading: Reading): void {
    this.#hasTime = true;
    this.#call(() => this.#listener.time?.(reading));
  }

  /** A Redis that restarted without its data or failed over may have lost messages that this process still has. */
  async #restore(record: RedisRecord, held: ReadonlySet<string>): Promise<void> {
    let missing: readonly RecordedMessage[] = [];
    this.#call(() => {
      missing = (this.#listener.missingFrom?.(held) ?? []).slice(0, MOST_RESTORED);
    });
    if (missing.length === 0) return;
    try {
      await record.write(missing);
    } catch {
      // A Redis user without write permission leaves this to other replicas.
      return;
    }
    this.#call(() => this.#listener.restored?.(missing.length));
  }

  #connected(isConnected: boolean, problem?: string): void {
    const before = this.#state;
    if (this.#isClosed || (isConnected === before?.isConnected && !isConnected)) return;
    if (isConnected && before?.isConnected && problem === before.problem) return;
    if (before === undefined && !isConnected && !this.#isLate) return;
    this.#state = { isConnected, problem };
    this.#call(() => this.#listener.connected(isConnected, problem));
  }

  get #isLate(): boolean {
    return performance.now() - this.#openedMs > FIRST_CONTACT_MS;
  }

  /** An error of a listener must not reach the connection, whose handlers would end the process. */
  #call(use: () => void): void {
    try {
      use();
    } catch (error) {
      this.#listener.failed?.(error);
    }
  }
}

import { type StoreObserver, silentObserver } from '../observer.ts';
import type { ClusterSettings } from './cluster.ts';
import type { RedisConnection, SentinelSettings, SingleSettings } from './connection.ts';
import { MessageRecord, openAnyLink, type RecordedMessage } from './record.ts';

export type RemoteStoreSettings = SingleSettings | SentinelSettings | ClusterSettings;

/** Receives a channel's events. None of the functions may throw. */
export interface ChannelListener {
  /** A message: at once while connected, and on every later connection until it expires. */
  message(text: string): void;
  /** Called with the reason when messages stop arriving, and when they arrive again. */
  connected(isConnected: boolean, problem?: string): void;
  /** Returns messages that the record has lost; they are written again. */
  missingFrom?(record: ReadonlySet<string>): readonly RecordedMessage[];
  restored?(count: number): void;
}

export interface Channel {
  /** Resolves once everything that was published before has arrived; never rejects. */
  readonly subscribed: Promise<void>;
  close(): void;
}

/** Time between reads of the record: the longest delay of a message if the subscription broke unnoticed. */
const LOOK_MS = 5_000;
const RETRY_MS = 250;

/** At most this many messages are written again per read; the others follow with the next. */
const MOST_RESTORED = 1_000;

/** A missing connection is a problem only after this time, because connecting takes a moment. */
const FIRST_CONTACT_MS = 1_000;

/**
 * Subscribes to a Redis channel, and reads the record of unexpired messages at every connection and every few seconds. A message
 * may arrive more than once, and late by at most the time between two reads.
 */
export function listen(settings: RemoteStoreSettings, name: string, listener: ChannelListener): Channel {
  return new Listening(settings, name, listener);
}

class Listening implements Channel {
  readonly subscribed: Promise<void>;
  readonly #name: string;
  readonly #listener: ChannelListener;
  readonly #subscriber: RedisConnection;
  /** In RESP2 a subscribed connection cannot read anything else. */
  readonly #reader: RedisConnection;
  #heardAll: () => void = () => {};
  #timer: NodeJS.Timeout | undefined;
  #isConnected: boolean | undefined;
  /** Why Redis could not be reached since the last successful read. */
  #problem: string | undefined;
  readonly #openedMs = performance.now();
  #isClosed = false;

  constructor(settings: RemoteStoreSettings, name: string, listener: ChannelListener) {
    this.#name = name;
    this.#listener = listener;
    this.subscribed = new Promise((resolve) => {
      this.#heardAll = resolve;
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
      if (channel === name) listener.message(text);
    });
    this.#lookIn(RETRY_MS);
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#subscriber.close();
    this.#reader.close();
    this.#heardAll();
  }

  #lookIn(delayMs: number): void {
    clearTimeout(this.#timer);
    if (!this.#isClosed) this.#timer = setTimeout(() => void this.#look(), delayMs).unref();
  }

  /** Subscribing again is harmless, and shows whether the connection works. */
  async #look(): Promise<void> {
    try {
      await this.#subscriber.client.subscribe(this.#name);
      const record = new MessageRecord(this.#reader.client, this.#name);
      const held = await record.read();
      for (const text of held) this.#listener.message(text);
      this.#problem = undefined;
      this.#connected(true);
      this.#heardAll();
      await this.#restore(record, held);
      this.#lookIn(LOOK_MS);
    } catch (error) {
      this.#connected(false, this.#problem ?? (error instanceof Error ? error.message : String(error)));
      this.#lookIn(RETRY_MS);
    }
  }

  /** A Redis that restarted without its data or failed over may have lost messages that this process still has. */
  async #restore(record: MessageRecord, held: readonly string[]): Promise<void> {
    const missing = (this.#listener.missingFrom?.(new Set(held)) ?? []).slice(0, MOST_RESTORED);
    if (missing.length === 0) return;
    try {
      await record.write(missing);
      this.#listener.restored?.(missing.length);
    } catch {
      // A Redis user without write permission leaves this to other replicas.
    }
  }

  #connected(isConnected: boolean, problem?: string): void {
    if (this.#isClosed || isConnected === this.#isConnected) return;
    if (this.#isConnected === undefined && !isConnected && !this.#isLate) return;
    this.#isConnected = isConnected;
    this.#listener.connected(isConnected, problem);
  }

  get #isLate(): boolean {
    return performance.now() - this.#openedMs > FIRST_CONTACT_MS;
  }
}

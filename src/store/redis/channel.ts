import { type StoreObserver, silentObserver } from '../observer.ts';
import type { ClusterSettings } from './cluster.ts';
import type { RedisConnection, SentinelSettings, SingleSettings } from './connection.ts';
import { MessageRecord, openAnyLink, type RecordedMessage } from './record.ts';

export type RemoteStoreSettings = SingleSettings | SentinelSettings | ClusterSettings;

/** Who listens to a channel. None of the functions may throw. */
export interface ChannelListener {
  /** A message: at once for whoever is connected, and again for whoever comes later while it still holds. */
  message(text: string): void;
  /** Called when nothing arrives any more, with the reason, and when everything arrives again. */
  connected(isConnected: boolean, problem?: string): void;
  /** What this listener knows and the record, as it was read just now, does not hold: it is written again. */
  missingFrom?(record: ReadonlySet<string>): readonly RecordedMessage[];
  restored?(count: number): void;
}

export interface Channel {
  /** Resolves once everything that was published before has arrived; never rejects. */
  readonly heard: Promise<void>;
  close(): void;
}

/** Between two looks at the record: should a subscription have broken unseen, this is how late a message can be. */
const LOOK_MS = 5_000;
const RETRY_MS = 250;

/** Written again at one look; the others follow with the next. */
const MOST_RESTORED = 1_000;

/** A connection takes a moment to open: only then is its absence a problem. */
const FIRST_CONTACT_MS = 1_000;

/**
 * Listens to what is published under a name (a Redis channel), and reads the record of what still holds: at every
 * connection, and every few seconds. A message arrives more than once; none is missed for longer than a look.
 */
export function listen(settings: RemoteStoreSettings, name: string, listener: ChannelListener): Channel {
  return new Listening(settings, name, listener);
}

class Listening implements Channel {
  readonly heard: Promise<void>;
  readonly #name: string;
  readonly #listener: ChannelListener;
  readonly #subscriber: RedisConnection;
  /** In RESP2 a connection that has subscribed can read nothing else. */
  readonly #reader: RedisConnection;
  #heardAll: () => void = () => {};
  #timer: NodeJS.Timeout | undefined;
  #isConnected: boolean | undefined;
  /** Why Redis could not be reached, since the last look that succeeded. */
  #problem: string | undefined;
  readonly #openedMs = performance.now();
  #isClosed = false;

  constructor(settings: RemoteStoreSettings, name: string, listener: ChannelListener) {
    this.#name = name;
    this.#listener = listener;
    this.heard = new Promise((resolve) => {
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

  /** Subscribing again to what is subscribed already is harmless, and shows whether the connection lives. */
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

  /** A Redis that restarted without its data, or failed over, may have lost what this process still knows. */
  async #restore(record: MessageRecord, held: readonly string[]): Promise<void> {
    const missing = (this.#listener.missingFrom?.(new Set(held)) ?? []).slice(0, MOST_RESTORED);
    if (missing.length === 0) return;
    try {
      await record.write(missing);
      this.#listener.restored?.(missing.length);
    } catch {
      // A Redis user that may only read leaves this to other replicas.
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

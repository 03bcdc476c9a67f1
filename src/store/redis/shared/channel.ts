import { setImmediate } from 'node:timers/promises';
import { pace } from '../../../domain/pace.ts';
import type { Channel, ChannelListener, RecordedMessage } from '../../shared-store.ts';
import { isRefusal } from '../scripts.ts';
import type { SetReading, WrongTypeFound } from './read-shared.ts';
import { type RecordedChannel, RedisRecord } from './record.ts';
import type { LinkUse, SharedLink } from './shared-link.ts';

/** At most this many messages are written again per read; the others follow with the next. */
const MOST_RESTORED = 1_000;

/** Messages of the record that are handled between two turns of the event loop. */
const PER_TURN = 16;

/** A missing connection is a problem only after this time, because connecting takes a moment. */
const FIRST_CONTACT_MS = 1_000;

interface ChannelLinks {
  /** In RESP2 a subscribed connection cannot read anything else. */
  readonly subscriber: SharedLink;
  readonly commands: SharedLink;
  /** A key whose server has the clock that all replicas go by. */
  readonly clockKey: string;
}

/**
 * Subscribes to a Redis channel, and reads the record of unexpired messages at every connection and every few seconds. A message
 * may arrive more than once, and late by at most the time between two reads.
 */
export class Subscription implements Channel {
  readonly subscribed: Promise<void>;
  readonly #name: string;
  readonly #listener: ChannelListener;
  readonly #subscriber: LinkUse;
  readonly #reader: LinkUse;
  readonly #record: RedisRecord;
  readonly #clockKey: string;
  #receivedAll: () => void = () => {};
  #timer: NodeJS.Timeout | undefined;
  #hasTime = false;
  /** Undefined before the first contact. */
  #state: { readonly isConnected: boolean; readonly problem: string | undefined } | undefined;
  readonly #openedMs = performance.now();
  #isClosed = false;

  constructor(
    { subscriber, commands, clockKey }: ChannelLinks,
    channel: RecordedChannel,
    listener: ChannelListener,
    wrongTypeFound: WrongTypeFound,
  ) {
    this.#name = channel.name;
    this.#listener = listener;
    this.#clockKey = clockKey;
    this.subscribed = new Promise((resolve) => {
      this.#receivedAll = resolve;
    });
    const events = {
      ready: () => this.#lookIn(0),
      lost: () => this.#disconnected('the connection was lost'),
    };
    this.#subscriber = subscriber.use(events);
    this.#reader = commands.use(events);
    this.#record = new RedisRecord(this.#reader.client, channel, wrongTypeFound);
    this.#subscriber.client.on('message', this.#received);
    // A connection that others use may be ready.
    this.#lookIn(0);
  }

  readonly #received = (channel: string, text: string): void => {
    if (channel === this.#name) this.#call(() => this.#listener.message(text));
  };

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#subscriber.client.off('message', this.#received);
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
      if (!this.#hasTime) this.#time(await this.#record.time());
      const refusal = await this.#subscribe();
      const held = await this.#read();
      this.#connected(true, refusal);
      this.#receivedAll();
      await this.#restore(held);
      this.#lookIn(pace.lookMs);
    } catch (error) {
      this.#disconnected(error instanceof Error ? error.message : String(error));
      this.#lookIn(pace.lookAgainMs);
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
  async #read(): Promise<ReadonlySet<string>> {
    const held = new Set<string>();
    for await (const reading of this.#record.readings()) {
      this.#time(reading);
      if (reading.leftOut > 0) this.#call(() => this.#listener.leftOut?.(reading.leftOut));
      for (const [index, text] of reading.members.entries()) {
        held.add(text);
        this.#call(() => this.#listener.message(text, reading.expiriesMs[index]));
        if (index % PER_TURN === 0) await setImmediate();
      }
    }
    return held;
  }

  #time(reading: SetReading): void {
    this.#hasTime = true;
    const { groupOf, routeOf } = this.#reader;
    const isReference = routeOf(groupOf(this.#record.key)) === routeOf(groupOf(this.#clockKey));
    this.#call(() => this.#listener.time?.(reading, isReference));
  }

  /** A Redis that restarted without its data or failed over may have lost messages that this process still has. */
  async #restore(held: ReadonlySet<string>): Promise<void> {
    let missing: readonly RecordedMessage[] = [];
    this.#call(() => {
      missing = (this.#listener.missingFrom?.(held) ?? []).slice(0, MOST_RESTORED);
    });
    if (missing.length === 0) return;
    try {
      await this.#record.write(missing);
    } catch {
      // A Redis user without write permission leaves this to other replicas.
      return;
    }
    this.#call(() => this.#listener.restored?.(missing.length));
  }

  /** @param error to be reported where it is not known why Redis cannot be reached */
  #disconnected(error: string): void {
    this.#connected(false, this.#subscriber.problem() ?? this.#reader.problem() ?? error);
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

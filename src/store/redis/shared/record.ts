/**
 * The record of a channel: a sorted set of its unexpired messages by the Unix time of their expiry. Without it, a replica that is
 * not connected while a message is published would never receive it.
 */
import {
  LONGEST_MESSAGE,
  type MessageRecord,
  type Published,
  type RecordedMessage,
  UnknownOutcome,
} from '../../shared-store.ts';
import { isRefusal, type RedisClient } from '../scripts.ts';
import { readShared, type SetReading, type WrongTypeFound } from './read-shared.ts';
import type { SharedLink } from './shared-link.ts';

/** Messages of one read. The parts of a long record arrive one after another, so that neither Redis nor this process is blocked. */
const PER_READ = 500;

/** Of a longer record, the messages that expire last are not read: more than all that a replica keeps. */
const MOST_READ = 150_000;

/** A channel and the key of its record. */
export interface RecordedChannel {
  readonly name: string;
  readonly recordKey: string;
}

export class RedisRecord implements MessageRecord {
  readonly #client: RedisClient;
  readonly #channel: string;
  readonly key: string;
  readonly #wrongTypeFound: WrongTypeFound;

  constructor(client: RedisClient, { name, recordKey }: RecordedChannel, wrongTypeFound: WrongTypeFound) {
    this.#client = client;
    this.#channel = name;
    this.key = recordKey;
    this.#wrongTypeFound = wrongTypeFound;
  }

  /** Reads the time of the server that holds the record, and no message. */
  async time(): Promise<SetReading> {
    return this.#readPart({ most: 0 });
  }

  /** Unix time by the clock of Redis. */
  async nowMs(): Promise<number> {
    return (await this.time()).nowMs;
  }

  /** The unexpired messages, in several readings. */
  async *readings(): AsyncGenerator<SetReading> {
    let next: SetReading['next'] | undefined;
    for (let found = 0; found < MOST_READ; found += PER_READ) {
      const reading = await this.#readPart({ most: PER_READ, ...next });
      yield reading;
      if (reading.found < PER_READ) return;
      next = reading.next;
    }
  }

  /** The texts of all unexpired messages. */
  async read(): Promise<readonly string[]> {
    return (await this.messages()).map(({ text }) => text);
  }

  /** All unexpired messages. */
  async messages(): Promise<readonly RecordedMessage[]> {
    const messages: RecordedMessage[] = [];
    for await (const { members, expiriesMs } of this.readings()) {
      for (const [place, text] of members.entries()) messages.push({ text, untilMs: expiriesMs[place] ?? 0 });
    }
    return messages;
  }

  /** Adds messages without publishing them. The record as a whole expires with the last of them. */
  async write(messages: readonly RecordedMessage[]): Promise<void> {
    if (messages.length > 0) await this.#share('', messages, []);
  }

  /**
   * Replaces `replaced` by messages in the record and publishes them, all in one step. Rejects with an `UnknownOutcome` if no answer came,
   * and with any other error if nothing was changed.
   */
  async publish(messages: readonly RecordedMessage[], replaced: readonly string[] = []): Promise<Published> {
    const [isPublished, received, problem] = await this.#share(this.#channel, messages, replaced);
    return { received: Number(received), notPublished: Number(isPublished) === 1 ? undefined : `${problem}` };
  }

  /** Whether the record survives a restart of Redis; undefined if unknown. */
  async isLasting(): Promise<boolean | undefined> {
    const info = await this.#client.info('persistence').catch(() => '');
    const appends = /^aof_enabled:(\d)/m.exec(info)?.[1];
    return appends === undefined ? undefined : appends === '1';
  }

  /** Whether Redis neither appends to a file nor takes snapshots. False if its user may not read that. */
  async isForgetful(): Promise<boolean> {
    if ((await this.isLasting()) !== false) return false;
    const save = await this.#client.config('GET', 'save').catch(() => undefined);
    return Array.isArray(save) && save[1] === '';
  }

  #readPart(part: {
    readonly most: number;
    readonly from?: string;
    readonly skip?: number;
  }): Promise<SetReading> {
    const bounded = { ...part, longestBytes: LONGEST_MESSAGE };
    return readShared(this.#client, this.key, bounded, this.#wrongTypeFound);
  }

  async #share(
    channel: string,
    messages: readonly RecordedMessage[],
    replaced: readonly string[],
  ): Promise<readonly unknown[]> {
    const given = messages.flatMap(({ text, untilMs }) => [untilMs, text]);
    try {
      const args = [channel, messages.length, ...given, ...replaced];
      const reply = await this.#client.share(this.key, args);
      return Array.isArray(reply) ? reply : [];
    } catch (error) {
      if (isRefusal(error) || !(error instanceof Error)) throw error;
      throw new UnknownOutcome(error.message);
    }
  }
}

/** How long `withRecord` tries to reach Redis. */
const CONNECT_MS = 5_000;
const RETRY_MS = 100;

/** Calls `use` with the record of a channel. Rejects if Redis cannot be reached within `connectMs`, or refuses. */
export async function withRecord<T>(
  shared: SharedLink,
  channel: RecordedChannel,
  use: (record: MessageRecord) => Promise<T>,
  wrongTypeFound: WrongTypeFound,
  connectMs = CONNECT_MS,
): Promise<T> {
  const link = shared.use();
  const giveUpMs = performance.now() + connectMs;
  try {
    for (;;) {
      const problem = await link.client.ping().then(
        () => undefined,
        (error: Error) => error.message,
      );
      if (problem === undefined) {
        await link.tried();
        return await use(new RedisRecord(link.client, channel, wrongTypeFound));
      }
      const refusal = link.refusal();
      if (refusal !== undefined || performance.now() >= giveUpMs)
        throw new Error(refusal ?? link.problem() ?? problem);
      await new Promise((resume) => setTimeout(resume, RETRY_MS));
    }
  } finally {
    link.close();
  }
}

/**
 * The record of a channel: a sorted set of its unexpired messages by the Unix time of their expiry. Without it, a replica that is
 * not connected while a message is published would never receive it.
 */
import { type StoreObserver, silentObserver } from '../observer.ts';
import type { RemoteStoreSettings } from './channel.ts';
import { openClusterConnection } from './cluster.ts';
import { type ConnectionEvents, openConnection, type RedisConnection } from './connection.ts';
import type { RedisClient } from './scripts.ts';

export interface RecordedMessage {
  readonly text: string;
  readonly untilMs: number;
}

/** How long `openRecord` tries to reach Redis. */
const CONNECT_MS = 5_000;
const RETRY_MS = 100;

/** Calls `use` with the record of a channel. Rejects if Redis cannot be reached within `connectMs`, or refuses. */
export async function openRecord<T>(
  settings: RemoteStoreSettings,
  channel: string,
  use: (record: MessageRecord) => Promise<T>,
  connectMs = CONNECT_MS,
): Promise<T> {
  let refusal: string | undefined;
  let problem: string | undefined;
  const observer: StoreObserver = {
    ...silentObserver,
    connectionFailed(reason, message) {
      problem = message;
      if (reason === 'auth') refusal = message;
    },
  };
  const link = openAnyLink(settings, { ready() {}, lost() {} }, observer);
  const giveUpMs = performance.now() + connectMs;
  try {
    for (;;) {
      const isReady = await link.client.ping().then(
        () => true,
        (error: Error) => {
          problem ??= error.message;
        },
      );
      if (isReady) return await use(new MessageRecord(link.client, channel));
      if (refusal !== undefined || performance.now() >= giveUpMs) throw new Error(refusal ?? problem);
      await new Promise((resume) => setTimeout(resume, RETRY_MS));
    }
  } finally {
    link.close();
  }
}

export function openAnyLink(
  settings: RemoteStoreSettings,
  events: ConnectionEvents,
  observer: StoreObserver = silentObserver,
): RedisConnection {
  return settings.kind === 'cluster'
    ? openClusterConnection(settings, observer, events)
    : openConnection(settings, observer, events);
}

export class MessageRecord {
  readonly #client: RedisClient;
  readonly #channel: string;
  readonly #key: string;

  constructor(client: RedisClient, channel: string) {
    this.#client = client;
    this.#channel = channel;
    this.#key = `${channel}:record`;
  }

  /** Unix time by the clock of Redis. */
  async nowMs(): Promise<number> {
    const [seconds = 0, micros = 0] = (await this.#client.time()).map(Number);
    return seconds * 1000 + Math.floor(micros / 1000);
  }

  /** The unexpired messages. */
  async read(nowMs = Date.now()): Promise<readonly string[]> {
    return this.#client.zrangebyscore(this.#key, nowMs, '+inf');
  }

  /** Adds messages. The record as a whole expires with the last of them. */
  async write(messages: readonly RecordedMessage[]): Promise<void> {
    if (messages.length === 0) return;
    await this.#client.zadd(this.#key, ...messages.flatMap(({ text, untilMs }) => [untilMs, text]));
    const [, lastMs] = await this.#client
      .zrevrange(this.#key, 0, 0, 'WITHSCORES')
      .then((last) => last.flat());
    if (lastMs !== undefined) await this.#client.pexpireat(this.#key, Number(lastMs));
  }

  /**
   * Records a message in place of `replaced`, and then publishes it, so that a replica that connects in between does not miss
   * it.
   *
   * @returns how many received it: in a Cluster, only those at one node
   */
  async publish(message: RecordedMessage, replaced: readonly string[] = []): Promise<number> {
    await this.#client.zremrangebyscore(this.#key, '-inf', await this.nowMs());
    await this.write([message]);
    if (replaced.length > 0) await this.#client.zrem(this.#key, ...replaced);
    return this.#client.publish(this.#channel, message.text);
  }

  /** Whether the record survives a restart of Redis; undefined if unknown. */
  async isLasting(): Promise<boolean | undefined> {
    const info = await this.#client.info('persistence').catch(() => '');
    const appends = /^aof_enabled:(\d)/m.exec(info)?.[1];
    return appends === undefined ? undefined : appends === '1';
  }
}

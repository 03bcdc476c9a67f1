import { type StoreObserver, silentObserver } from './observer.ts';
import { type ClusterSettings, openClusterLink } from './redis-cluster.ts';
import {
  type LinkEvents,
  openLink,
  type RedisLink,
  type SentinelSettings,
  type SingleSettings,
} from './redis-link.ts';

export type RemoteStoreSettings = SingleSettings | SentinelSettings | ClusterSettings;

/** Who listens to a channel. Neither function may throw. */
export interface ChannelListener {
  /** A message, told at once to whoever is connected, and again to whoever comes later while it still holds. */
  message(text: string): void;
  /** Told when nothing arrives any more, and when everything arrives again. */
  connected(isConnected: boolean): void;
}

export interface Channel {
  /** Resolves once everything that was said before has been heard; never rejects. */
  readonly heard: Promise<void>;
  close(): void;
}

/** Between two looks at the record: should a subscription have broken unseen, this is how late a message can be. */
const LOOK_MS = 5_000;
const RETRY_MS = 250;

/** How long `publish` goes on trying to reach Redis. */
const PUBLISH_MS = 5_000;

/**
 * Listens to what is published under a name (a Redis channel), and reads the record of what still holds: at every
 * connection, and every few seconds. A message is told more than once; none is missed for longer than a look.
 */
export function listen(settings: RemoteStoreSettings, name: string, listener: ChannelListener): Channel {
  return new Listening(settings, name, listener);
}

/**
 * Records a message until a moment of Unix time, and tells it to everybody who listens.
 *
 * @returns how many heard it: of a Cluster, those at one node alone
 * @throws Error when Redis cannot be reached within five seconds, or refuses
 */
export async function publish(
  settings: RemoteStoreSettings,
  name: string,
  message: string,
  untilMs: number,
): Promise<number> {
  let problem: string | undefined;
  const observer: StoreObserver = {
    ...silentObserver,
    connectionFailed(_reason, message) {
      problem = message;
    },
  };
  const link = openAnyLink(settings, { ready() {}, lost() {} }, observer);
  const giveUpMs = performance.now() + PUBLISH_MS;
  try {
    for (;;) {
      try {
        return await publishOnce(link, name, message, untilMs);
      } catch (error) {
        if (performance.now() >= giveUpMs) throw problem === undefined ? error : new Error(problem);
        await new Promise((resume) => setTimeout(resume, RETRY_MS));
      }
    }
  } finally {
    link.close();
  }
}

/** First the record, then the news: a replica that connects in between misses neither. */
async function publishOnce(
  { client }: RedisLink,
  name: string,
  message: string,
  untilMs: number,
): Promise<number> {
  const record = recordOf(name);
  await client.zremrangebyscore(record, '-inf', Date.now());
  await client.zadd(record, untilMs, message);
  const [, lastMs = untilMs] = (await client.zrevrange(record, 0, 0, 'WITHSCORES')).flat();
  await client.pexpireat(record, Number(lastMs));
  return await client.publish(name, message);
}

/** A sorted set of messages by the moment at which they cease to hold. */
function recordOf(name: string): string {
  return `${name}:record`;
}

function openAnyLink(
  settings: RemoteStoreSettings,
  events: LinkEvents,
  observer: StoreObserver = silentObserver,
): RedisLink {
  return settings.kind === 'cluster'
    ? openClusterLink(settings, observer, events)
    : openLink(settings, observer, events);
}

class Listening implements Channel {
  readonly heard: Promise<void>;
  readonly #name: string;
  readonly #listener: ChannelListener;
  readonly #subscriber: RedisLink;
  /** In RESP2 a connection that has subscribed can read nothing else. */
  readonly #reader: RedisLink;
  #heardAll: () => void = () => {};
  #timer: NodeJS.Timeout | undefined;
  #isConnected = false;
  #isClosed = false;

  constructor(settings: RemoteStoreSettings, name: string, listener: ChannelListener) {
    this.#name = name;
    this.#listener = listener;
    this.heard = new Promise((resolve) => {
      this.#heardAll = resolve;
    });
    const events = { ready: () => this.#lookIn(0), lost: () => this.#connected(false) };
    this.#subscriber = openAnyLink(settings, events);
    this.#reader = openAnyLink(settings, events);
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

  /** Subscribing again to what is subscribed already is harmless, and tells whether the connection lives. */
  async #look(): Promise<void> {
    try {
      await this.#subscriber.client.subscribe(this.#name);
      const held = await this.#reader.client.zrangebyscore(recordOf(this.#name), Date.now(), '+inf');
      for (const text of held) this.#listener.message(text);
      this.#connected(true);
      this.#heardAll();
      this.#lookIn(LOOK_MS);
    } catch {
      this.#connected(false);
      this.#lookIn(RETRY_MS);
    }
  }

  #connected(isConnected: boolean): void {
    if (this.#isClosed || isConnected === this.#isConnected) return;
    this.#isConnected = isConnected;
    this.#listener.connected(isConnected);
  }
}

import type { RedisClient } from './scripts.ts';

/** Buckets that wait in Redis, at most: some MB. Replicas that ask at the same time may exceed it, each by one call. */
const MOST_WAITING = 10_000;
/** Buckets of one call. */
const MOST_AT_ONCE = 1_000;
const SEND_MS = 50;
/** How long they wait for a recovery. */
const LIFE_MS = 60_000;

/** Buckets that charges were refused for, because their counts are missing. A recovery puts them back before the others. */
export class WantedBuckets {
  /** A sorted set, by the time at which they were asked for. */
  readonly #key: string;
  readonly #waiting = new Set<string>();
  #timer: NodeJS.Timeout | undefined;

  constructor(prefix: string) {
    this.#key = `${prefix}:1:{journal}:wanted`;
  }

  /** Asks for a bucket soon. What does not fit, or cannot be sent, waits for the end of the recovery. */
  want(key: string, client: RedisClient): void {
    if (this.#waiting.size < MOST_AT_ONCE) this.#waiting.add(key);
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      this.#send(client).catch(() => undefined);
    }, SEND_MS).unref();
  }

  async #send(client: RedisClient): Promise<void> {
    const keys = [...this.#waiting];
    this.#waiting.clear();
    const room = MOST_WAITING - (await client.zcard(this.#key));
    if (room <= 0) return;
    const nowMs = Date.now();
    await client.zadd(this.#key, 'NX', ...keys.slice(0, room).flatMap((key) => [nowMs, key]));
    await client.pexpire(this.#key, LIFE_MS);
  }

  /** Takes some out, those that have waited for the longest first. Returns none if Redis does not allow it. */
  async take(client: RedisClient): Promise<readonly string[]> {
    try {
      const keys = await client.zrangebyscore(this.#key, '-inf', '+inf', 'LIMIT', 0, MOST_AT_ONCE);
      if (keys.length > 0) await client.zrem(this.#key, ...keys);
      return keys;
    } catch {
      return [];
    }
  }
}

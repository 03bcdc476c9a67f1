import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { weirFetch } from '../../examples/client/weir-fetch.mjs';
import { CoalescedLog } from '../../src/store/coalesced-log.ts';

const CLIENTS = 1_000;
const [POINTS, WINDOW_MS] = [6_000, 60_000];
const DEMAND = 0.98;
const [WARM_UP_WINDOWS, WINDOWS] = [2, 4];
const ROUND_TRIP_MS = 3;

it('1,000 clients that are asked for 98 % of a limit get it, and hardly any 429', {
  timeout: 300_000,
}, async () => {
  const { served, refused } = await simulate(randomFrom(1));
  expect(served / (WINDOWS * POINTS)).toBeGreaterThanOrEqual(0.97);
  expect(refused / (served + refused)).toBeLessThan(0.01);
});

it('a client that sends more at once than its limit allows, before it knows the limit, gets it in every window after that', async () => {
  const [points, windowMs, requests] = [500, 1_000, 1_000];
  const time = new Time();
  const server = startServer(time, points, windowMs);
  const send = weirFetch(clientOptions(time, server.fetch, randomFrom(1)));
  let servedMs = 0;
  for (let sent = 0; sent < requests; sent++)
    void send('http://a.test/').then(() => {
      servedMs = time.nowMs;
    });
  await time.runUntil(10 * windowMs);
  expect(server.counts).toEqual({ served: requests, refused: requests - points });
  // The second half waits for Retry-After and up to a quarter of it, and then has room.
  expect(servedMs).toBeLessThan(2 * windowMs);
});

it('a client that always has 50 requests to send gets the whole limit', async () => {
  const [points, windowMs, windows] = [500, 1_000, 10];
  const time = new Time();
  const server = startServer(time, points, windowMs);
  const send = weirFetch(clientOptions(time, server.fetch, randomFrom(1)));
  const sendAgain = async (): Promise<void> => {
    await send('http://a.test/');
    if (time.nowMs < windows * windowMs) await sendAgain();
  };
  for (let sent = 0; sent < 50; sent++) void sendAgain();
  await time.runUntil(windows * windowMs);
  expect(server.counts.served).toBeGreaterThan(0.97 * windows * points);
  expect(server.counts.refused).toBeLessThan(0.01 * server.counts.served);
});

/** A gateway with one limit, which counts by the algorithm of the stores, and what it has answered from `countedFromMs` on. */
function startServer(time: Time, points: number, windowMs: number, countedFromMs = 0) {
  const bucket = new CoalescedLog('bucket');
  const counts = { served: 0, refused: 0 };
  const charge = () => {
    const nowUs = Math.round(time.nowMs * 1_000);
    bucket.advance(nowUs, windowMs * 1_000);
    const hasRoom = bucket.hasRoom(1, points);
    if (hasRoom) bucket.spend(1, points, nowUs, windowMs * 1_000);
    if (time.nowMs >= countedFromMs) counts[hasRoom ? 'served' : 'refused'] += 1;
    return bucket.state(1, points, hasRoom, nowUs, windowMs * 1_000);
  };
  const fetch = async () => {
    await time.sleep(ROUND_TRIP_MS / 2);
    const { remaining, resetAfterUs, retryAfterUs } = charge();
    await time.sleep(ROUND_TRIP_MS / 2);
    const headers: Record<string, string> = {
      RateLimit: `"shared";r=${remaining};t=${Math.ceil(resetAfterUs / 1e6)}`,
      'RateLimit-Policy': `"shared";q=${points};w=${windowMs / 1_000}`,
    };
    if (retryAfterUs > 0) headers['Retry-After'] = `${Math.max(1, Math.ceil(retryAfterUs / 1e6))}`;
    return new Response(null, { status: retryAfterUs > 0 ? 429 : 200, headers });
  };
  return { fetch, counts };
}

const clientOptions = (time: Time, fetch: () => Promise<Response>, random: () => number) => ({
  fetch,
  random,
  now: () => time.nowMs,
  sleep: (ms: number) => time.sleep(ms),
});

/** Runs the clients on a clock that only their waits move. */
async function simulate(random: () => number) {
  const time = new Time();
  const { fetch, counts } = startServer(time, POINTS, WINDOW_MS, WARM_UP_WINDOWS * WINDOW_MS);
  const options = clientOptions(time, fetch, random);
  const clients = Array.from({ length: CLIENTS }, () => weirFetch(options));
  const endMs = (WARM_UP_WINDOWS + WINDOWS) * WINDOW_MS;
  for (let startMs = 0; startMs < endMs; startMs += WINDOW_MS) {
    for (let asked = 0; asked < DEMAND * POINTS; asked++) {
      const client = clients[Math.floor(random() * CLIENTS)];
      void time.sleep(startMs + random() * WINDOW_MS).then(() => client?.('http://a.test/'));
    }
  }
  await time.runUntil(endMs);
  return counts;
}

/** A clock, and who waits for which time. */
class Time {
  nowMs = 0;
  /** By milliseconds, so that what follows within one is run together. */
  readonly #waiting = new Map<number, (() => void)[]>();

  sleep(ms: number): Promise<void> {
    const atMs = Math.max(Math.ceil(this.nowMs + ms), this.nowMs + 1);
    return new Promise((resolve) => {
      const others = this.#waiting.get(atMs);
      if (others === undefined) this.#waiting.set(atMs, [resolve]);
      else others.push(resolve);
    });
  }

  async runUntil(endMs: number): Promise<void> {
    for (; this.nowMs < endMs; this.nowMs++) {
      const due = this.#waiting.get(this.nowMs);
      if (due === undefined) continue;
      this.#waiting.delete(this.nowMs);
      for (const resolve of due) resolve();
      await nextTurn();
    }
  }
}

/** A generator of random numbers that repeats itself for a seed (mulberry32). */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/**
 * A fetch that keeps within the limits of an API behind Weir: it reads `RateLimit` and `RateLimit-Policy`, delays and spaces requests while
 * little is left, and waits for `Retry-After` after a 429. It shares limits with other clients, which it never hears of.
 *
 *     const fetch = weirFetch();
 *     const response = await fetch('https://api.example.com/v3/payees', { headers: { Authorization: 'Bearer …' } });
 *
 * Use one for each credential. It needs a fetch and nothing else, in Node, Deno, Bun and browsers.
 */

/**
 * Where less than this part of a limit is left, requests wait for the missing part of the window, times this factor: with a window of 60 s
 * and 2 % left, 3.6 s. All clients that share the limit wait about as long, so as much is asked for as before, but fluctuations shrink.
 */
const LITTLE = 0.05;
const DELAY = 2;

/** Where there is more demand than points, requests are spaced instead. This part of the limit is then left over. */
const SPARE = 0.012;

/** Requests are not spaced where more than this part of each limit was left for so many windows. */
const PLENTY = 0.5;
const SPACED_WINDOWS = 3;

/** How fast the spacing follows what is left, per window. Above 3 it would swing: what is left shows a change only after a window. */
const GAIN = 2;

/** After a 429, requests are so much further apart, and after one that did not have to wait for the last one, so much closer. */
const SLOWER = 1.15;
const UNUSED = 0.5;

/** A client is alone with its limit if it sent more than this part of what is counted. */
const ALONE = 0.9;

/** Weir counts a request for at most this many windows. */
const COUNTED_WINDOWS = 1.01;

/** Limits with longer windows are not spread: a request would wait for minutes. */
const LONGEST_WINDOW_SECONDS = 300;

/** Requests that are remembered. */
const MOST_RECENT = 1_000;

/** Waits are longer by a random part of up to this, so that clients that were refused together do not come back together. */
const JITTER = 0.25;

/** Rejects as soon as the signal is aborted. */
async function sleepMs(ms, signal) {
  signal?.throwIfAborted();
  await new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', stop);
      resolve();
    }, ms);
    signal?.addEventListener('abort', stop, { once: true });
  });
}

/**
 * @param {object} [options]
 * @param {typeof globalThis.fetch} [options.fetch] what sends the requests
 * @param {number} [options.retries] how often a request that got a 429 is sent again
 * @param {number} [options.longestWaitMs] a 429 that asks for more is returned at once
 * @param {() => number} [options.now] milliseconds of a clock that never goes back
 * @param {(ms: number, signal?: AbortSignal | null) => Promise<unknown>} [options.sleep] rejects if the signal is aborted
 * @param {() => number} [options.random]
 * @returns {typeof globalThis.fetch}
 */
export function weirFetch({
  fetch = globalThis.fetch,
  retries = 5,
  longestWaitMs = 60_000,
  now = () => performance.now(),
  sleep = sleepMs,
  random = Math.random,
} = {}) {
  const pace = new Pace(random);
  return async (input, init) => {
    // As in fetch itself, null is no signal, whatever the Request has.
    const signal = init?.signal === undefined ? input.signal : init.signal;
    for (let left = retries; ; left--) {
      const turn = pace.reserve(now(), left < retries);
      try {
        const waitMs = turn.atMs - now();
        if (waitMs > 0) await sleep(waitMs, signal);
        signal?.throwIfAborted();
      } catch (error) {
        pace.release(turn);
        throw error;
      }
      const isLast = left === 0 || isOnce(input, init);
      const response = await fetch(input, init);
      pace.learn(turn, response, now());
      if (response.status !== 429 || isLast) return response;
      const afterMs = retryAfterMs(response.headers.get('retry-after')) * (1 + JITTER * random());
      if (afterMs > longestWaitMs) return response;
      await response.body?.cancel();
      await sleep(afterMs, signal);
    }
  };
}
/** When requests may be sent. */
class Pace {
  #random;
  /** The limit with the smallest part left: that part, its points and its window. */
  #limit = { free: 1, points: MOST_RECENT, windowMs: 0 };
  /** Between two requests, where they are spaced. */
  #intervalMs = 0;
  #nextMs = 0;
  #spacedUntilMs = Number.NEGATIVE_INFINITY;
  #learnedMs = 0;
  /** When a 429 last made the spacing longer. */
  #slowedMs = Number.NEGATIVE_INFINITY;
  /** Requests of the last window, each with the time of its answer, or of its turn while it has none. The limit cannot have counted it later. */
  #recent = [];

  constructor(random) {
    this.#random = random;
  }

  /** Gives the next request its turn. */
  reserve(nowMs, isRetry) {
    const { free, points, windowMs } = this.#limit;
    const countedMs = COUNTED_WINDOWS * windowMs;
    // Until a response has named the window, all requests may be in it.
    const isOver = (turn) => windowMs > 0 && turn?.atMs <= nowMs - countedMs;
    while (isOver(this.#recent[0]) || this.#recent.length > MOST_RECENT) this.#recent.shift();
    const before = this.#recent.at(-points);
    const roomMs = before === undefined ? 0 : before.atMs + countedMs;
    const isAlone = this.#recent.length > points / 2 && this.#recent.length > ALONE * (1 - free) * points;
    const isLate = !isAlone && nowMs <= this.#spacedUntilMs && nowMs < this.#nextMs;
    const littleMs = isLate || isAlone ? 0 : Math.max(0, LITTLE - free) * windowMs * DELAY;
    const delayMs = littleMs * (1 + JITTER * (2 * this.#random() - 1));
    const turn = { atMs: Math.max(nowMs, roomMs, isLate ? this.#nextMs : 0) + delayMs, isUnspaced: !isLate && !isRetry };
    this.#nextMs = turn.atMs + this.#intervalMs;
    this.#recent.push(turn);
    return turn;
  }

  /** Takes back a turn that is not used, so that later requests do not wait for it. */
  release(turn) {
    this.#forget(turn);
    const lastMs = this.#recent.reduce((latest, { atMs }) => Math.max(latest, atMs), this.#learnedMs);
    this.#nextMs = Math.min(this.#nextMs, lastMs + this.#intervalMs);
  }

  #forget(turn) {
    this.#recent = this.#recent.filter((one) => one !== turn);
  }

  learn(turn, { status, headers }, nowMs) {
    const sentMs = turn.atMs;
    turn.atMs = nowMs;
    const limit = scarcest(headers.get('ratelimit'), headers.get('ratelimit-policy'));
    if (status === 429) this.#forget(turn);
    if (limit === undefined) return;
    const { free, windowMs, points } = limit;
    const windows = Math.min(1, (nowMs - this.#learnedMs) / windowMs);
    this.#limit = limit;
    this.#learnedMs = nowMs;
    // As fast as it was served lately.
    const servedMs = windowMs / Math.max(1, this.#recent.length);
    if (status === 429 || free <= PLENTY) this.#spacedUntilMs = nowMs + SPACED_WINDOWS * windowMs;
    if (status === 429) {
      // Of requests that were sent together, one counts: all of them found the same limit used up.
      if (sentMs >= this.#slowedMs) {
        this.#intervalMs = Math.max(this.#intervalMs * SLOWER, servedMs);
        this.#slowedMs = nowMs;
      }
    } else if (nowMs <= this.#spacedUntilMs) {
      this.#intervalMs = (this.#intervalMs || servedMs / 2) * Math.exp(-GAIN * windows * (free - SPARE));
      // A client that asks for less than it may must not be held to that later, when it has more to ask for.
      if (turn.isUnspaced) this.#intervalMs *= UNUSED;
    }
    // Nobody waits for longer than a window without asking again, and nobody needs more than the whole limit.
    this.#intervalMs = Math.min(Math.max(this.#intervalMs, windowMs / points), windowMs);
  }
}

/** The limit of a response with the smallest part left, of those that are not too long; undefined if there is none. */
function scarcest(rateLimit, policy) {
  const policies = new Map(itemsOf(policy).map((item) => [item.name, item]));
  let found;
  for (const { name, r } of itemsOf(rateLimit)) {
    const { q, w } = policies.get(name) ?? {};
    if (!(q > 0 && w > 0 && w <= LONGEST_WINDOW_SECONDS && r >= 0)) continue;
    if (found === undefined || r / q < found.free) found = { free: r / q, windowMs: w * 1000, points: q };
  }
  return found;
}

/** The items of a list such as `"account-read";q=500;w=1` (RFC 9651), with their numbers. */
function itemsOf(field) {
  const items = (field ?? '').matchAll(/"((?:[^"\\]|\\.)*)"((?:;[^,"]*(?:"[^"]*")?)*)/g);
  return [...items].map(([, name, parameters]) => {
    const numbers = [...parameters.matchAll(/;\s*([a-z]+)=(\d+)/g)].map(([, key, value]) => [key, Number(value)]);
    return { name, ...Object.fromEntries(numbers) };
  });
}

/** RFC 9110, section 10.2.3: seconds or a date. A second without the field. */
function retryAfterMs(field) {
  if (field === null) return 1_000;
  const waitMs = /^\d+$/.test(field) ? Number(field) * 1_000 : Date.parse(field) - Date.now();
  return waitMs > 0 ? waitMs : 1_000;
}

/** Whether a request cannot be sent again, because its body is a stream or another async iterable, such as a generator of Node. */
function isOnce(input, init) {
  const body = init?.body;
  const isStream = body && typeof body === 'object' && ('getReader' in body || Symbol.asyncIterator in body);
  // Firefox has no `body` of a Request. A GET and a HEAD have none.
  return isStream || (input instanceof Request && input.body !== null && !/^(GET|HEAD)$/.test(input.method));
}

import { createReadStream } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';
import { weirFetch } from '../../examples/client/weir-fetch.mjs';
import { startGateway } from '../fixtures/gateway.ts';

interface Answer {
  readonly status?: number;
  readonly fields?: Record<string, string>;
}

/** A client whose clock moves only while it sleeps, and what it did. */
function start(answerOf: (index: number) => Answer, options: Parameters<typeof weirFetch>[0] = {}) {
  let nowMs = 0;
  const sentMs: number[] = [];
  const send = weirFetch({
    now: () => nowMs,
    random: () => 1,
    async sleep(ms) {
      nowMs += ms;
    },
    async fetch() {
      sentMs.push(Math.round(nowMs));
      const { status = 200, fields = {} } = answerOf(sentMs.length - 1);
      return new Response(null, { status, headers: fields });
    },
    ...options,
  });
  return { send, sentMs };
}

const URL = 'http://a.test/';

it('against a real gateway, a client that sends as fast as it can is never refused', async () => {
  const gateway = await startGateway({ limits: { windowSeconds: 1 } });
  onTestFinished(() => gateway.close());
  const send = weirFetch({ retries: 0 });
  const statuses: number[] = [];
  for (let sent = 0; sent < 40; sent++) {
    const response = await send(`${gateway.url}/v3/things`, { headers: { Authorization: 'Bearer service' } });
    statuses.push(response.status);
    await response.arrayBuffer();
  }
  expect(statuses).toEqual(statuses.map(() => 200));
  expect(gateway.upstream.seen).toHaveLength(40);
});

describe('after a 429, a client', () => {
  it('waits for Retry-After and a random part of it, and sends the request again', async () => {
    const { send, sentMs } = start((index) =>
      index === 0 ? { status: 429, fields: { 'Retry-After': '2' } } : {},
    );
    expect((await send(URL, { method: 'POST', body: 'text' })).status).toBe(200);
    expect(sentMs).toEqual([0, 2_500]);
  });

  it('waits for a date, and for a second without the field', async () => {
    const soon = new Date(Date.now() + 60_000).toUTCString();
    const { send, sentMs } = start(
      (index) => [{ status: 429 }, { status: 429, fields: { 'Retry-After': soon } }][index] ?? {},
      { longestWaitMs: 100_000 },
    );
    expect((await send(URL)).status).toBe(200);
    expect(sentMs[1]).toBe(1_250);
    expect(sentMs[2]).toBeGreaterThan(60_000);
  });

  it('gives up after so many attempts, after too long a wait, and for a body that cannot be sent again', async () => {
    const refuse = () => ({ status: 429, fields: { 'Retry-After': '3600' } });
    const often = start(() => ({ status: 429 }), { retries: 2 });
    expect((await often.send(URL)).status).toBe(429);
    expect(often.sentMs).toHaveLength(3);
    const long = start(refuse);
    expect((await long.send(URL)).status).toBe(429);
    const stream = start(() => ({ status: 429 }));
    const body = new Blob(['text']).stream();
    await stream.send(URL, { method: 'POST', body, duplex: 'half' } as RequestInit);
    await stream.send(new Request(URL, { method: 'POST', body: 'text' }));
    expect([long.sentMs.length, stream.sentMs.length]).toEqual([1, 2]);
  });
});

describe('after a 429, a body', () => {
  const sendsOf = async (body: unknown) => {
    const { send, sentMs } = start((index) => ({ status: index === 0 ? 429 : 200 }));
    const { status } = await send(URL, { method: 'POST', body, duplex: 'half' } as RequestInit);
    return [sentMs.length, status];
  };

  it('that is read once is not sent again, and the 429 is returned', async () => {
    const generator = (async function* () {
      yield 'text';
    })();
    const file = createReadStream(fileURLToPath(import.meta.url));
    onTestFinished(() => void file.destroy());
    for (const body of [generator, file, new Blob(['text']).stream()])
      expect(await sendsOf(body)).toEqual([1, 429]);
  });

  it('that can be read again is sent again', async () => {
    const again = [
      'text',
      Buffer.from('text'),
      new Blob(['text']),
      new FormData(),
      new URLSearchParams('a=1'),
    ];
    for (const body of again) expect(await sendsOf(body)).toEqual([2, 200]);
  });
});

it('after a 429, a GET is sent again where a Request does not show its body, as in Firefox', async () => {
  const requestOf = (init: RequestInit) =>
    Object.defineProperty(new Request(URL, init), 'body', { value: undefined });
  const { send, sentMs } = start((index) => ({ status: index === 1 ? 200 : 429 }));
  expect((await send(requestOf({}))).status).toBe(200);
  expect((await send(requestOf({ method: 'POST', body: 'text' }))).status).toBe(429);
  expect(sentMs).toHaveLength(3);
});

describe('a call that is aborted', () => {
  const ABORTED = new Error('aborted by the test');

  it.each<[string, (signal: AbortSignal) => Parameters<typeof fetch>]>([
    ['signal of the call', (signal) => [URL, { signal }]],
    ['signal of the Request', (signal) => [new Request(URL, { signal })]],
  ])('while it waits for Retry-After rejects at once: %s', async (_, argumentsFor) => {
    const aborting = new AbortController();
    const send = weirFetch({
      random: () => 0,
      async fetch() {
        setImmediate(() => aborting.abort(ABORTED));
        return new Response(null, { status: 429, headers: { 'Retry-After': '50' } });
      },
    });
    await expect(send(...argumentsFor(aborting.signal))).rejects.toBe(ABORTED);
  });

  it('before it begins sends nothing', async () => {
    const { send, sentMs } = start(() => ({}));
    await expect(send(URL, { signal: AbortSignal.abort(ABORTED) })).rejects.toBe(ABORTED);
    expect(sentMs).toEqual([]);
  });

  it('while it waits for room in the window leaves its place to others', async () => {
    const fields = { RateLimit: '"two";r=2;t=60', 'RateLimit-Policy': '"two";q=2;w=60' };
    const time = { nowMs: 0 };
    const sent: number[] = [];
    const send = weirFetch({
      now: () => time.nowMs,
      async fetch() {
        sent.push(time.nowMs);
        return new Response(null, { headers: fields });
      },
    });
    for (let count = 0; count < 2; count++) await send(URL);
    const aborting = new AbortController();
    const waiting = [1, 2, 3].map(() => send(URL, { signal: aborting.signal }));
    aborting.abort(ABORTED);
    for (const one of waiting) await expect(one).rejects.toBe(ABORTED);
    time.nowMs = 61_000;
    for (let count = 0; count < 2; count++) await send(URL);
    expect(sent).toEqual([0, 0, 61_000, 61_000]);
  });

  it('while it waits for its turn leaves that to others', async () => {
    const waits: number[] = [];
    const sleep = (ms: number, signal?: AbortSignal | null) =>
      new Promise((_, reject) => {
        waits.push(ms);
        signal?.addEventListener('abort', () => reject(signal.reason));
      });
    const { send } = start(() => left(0), { now: () => 0, sleep });
    await send(URL);
    const waitingFor = async (calls: number) => {
      const aborting = new AbortController();
      const waiting = Array.from({ length: calls }, () => send(URL, { signal: aborting.signal }));
      aborting.abort(ABORTED);
      for (const one of waiting) await expect(one).rejects.toBe(ABORTED);
      return waits.splice(0);
    };
    // Not spaced yet.
    await waitingFor(1);
    const before = await waitingFor(1);
    expect(before).toHaveLength(1);
    expect(new Set(await waitingFor(5)).size).toBe(5);
    expect(await waitingFor(1)).toEqual(before);
  });
});

const left = (points: number) => ({
  fields: {
    RateLimit: `"plenty";r=900;t=60, "few";r=${points};t=1`,
    'RateLimit-Policy': '"plenty";q=1000;w=60, "few";q=10;qu="points";w=1',
  },
});

it('requests are spaced while others leave little of the scarcest limit, and not while there is plenty', async () => {
  const busy = start(() => left(0));
  for (let sent = 0; sent < 5; sent++) await busy.send(URL);
  const waits = busy.sentMs.slice(2).map((atMs, index) => atMs - (busy.sentMs[index + 1] ?? 0));
  for (const waitMs of waits) expect(waitMs).toBeGreaterThanOrEqual(100);
  const calm = start(() => left(9));
  for (let sent = 0; sent < 5; sent++) await calm.send(URL);
  expect(calm.sentMs).toEqual([0, 0, 0, 0, 0]);
});

it('where others leave little, a request waits for the missing part of the window, and those after it are spaced only while they have to wait', async () => {
  const seconds = { RateLimit: '"shared";r=2;t=60', 'RateLimit-Policy': '"shared";q=100;w=60' };
  let nowMs = 0;
  const sleep = async (ms: number) => {
    nowMs += ms;
  };
  const options = { now: () => nowMs, sleep, random: () => 0.5 };
  const { send } = start(() => ({ fields: seconds }), options);
  await send(URL);
  expect(nowMs).toBe(0);
  for (let sent = 0; sent < 5; sent++) {
    nowMs += 60_000;
    const startMs = nowMs;
    await send(URL);
    expect(nowMs - startMs).toBeCloseTo(2 * (0.05 - 0.02) * 60_000);
  }
  // What was learned while there was a minute between requests does not hold up the next ones.
  const startMs = nowMs;
  await send(URL);
  expect(nowMs - startMs).toBeLessThan(10_000);
});

it('limits of a day are not spread over the day', async () => {
  const fields = { RateLimit: '"day";r=1;t=86400', 'RateLimit-Policy': '"day";q=1000;w=86400' };
  const { send, sentMs } = start(() => ({ fields }));
  for (let sent = 0; sent < 3; sent++) await send(URL);
  expect(sentMs).toEqual([0, 0, 0]);
});

it('no more than the limit is sent within a window', async () => {
  const { send, sentMs } = start(() => left(8));
  for (let sent = 0; sent < 25; sent++) await send(URL);
  expect(sentMs.filter((atMs) => atMs < 1_000)).toHaveLength(10);
  // Weir may count a request for 1 % longer than a window.
  expect(sentMs.at(-1)).toBe(2_020);
});

it.each([
  [{ RateLimit: 'nonsense', 'RateLimit-Policy': '"' }],
  [{ RateLimit: '"a";r=1', 'RateLimit-Policy': '"b";q=1;w=1' }],
  [{ RateLimit: '"a";r=0;t=1', 'RateLimit-Policy': '"a";q=0;w=0' }],
])('fields that cannot be used change nothing: %j', async (fields) => {
  const { send, sentMs } = start(() => ({ fields }));
  for (let sent = 0; sent < 3; sent++) await send(URL);
  expect(sentMs).toEqual([0, 0, 0]);
});

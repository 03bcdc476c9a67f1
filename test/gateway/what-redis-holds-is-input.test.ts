import { setTimeout as pause } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { PLENTY } from '../fixtures/configuration.ts';
import { openFuzz, pick } from '../fixtures/fuzz.ts';
import { sendTo } from '../fixtures/gateway.ts';
import { sharedRedisUrl, uniqueRedisStore } from '../fixtures/redis-url.ts';
import { startUpstream, type TestUpstream } from '../fixtures/upstream.ts';
import { startWeir, type WeirProcess } from '../fixtures/weir-process.ts';

const SOON = { timeout: 30_000, interval: 50 };
const HOUR_MS = 3_600_000;

const limit = () => ({
  bucket: 'account-read',
  id: 'acct_9',
  limit: 5,
  atMs: Date.now(),
  untilMs: Date.now() + HOUR_MS,
  why: 'w',
  by: 'b',
});

const revocation = () => ({
  kind: 'principal',
  target: 'person_9',
  atMs: Date.now(),
  untilMs: Date.now() + HOUR_MS,
});

/** Values that have ended a process, broken a page or blocked one, instead of a member or a whole message. */
const VALUES = [
  Number.MAX_SAFE_INTEGER,
  1e300,
  -1,
  0.5,
  null,
  '',
  '\u2028',
  '\u0000\u001b[2J',
  '\ud800',
  '\u202e',
  'x'.repeat(100_000),
  '__proto__',
  [],
  [null],
  {},
  true,
] as const;

const TEXTS = [
  '',
  '{',
  'null',
  '[]',
  '1e999',
  '"\u2028"',
  '[['.repeat(20_000),
  '{"a":'.repeat(20_000),
  'two words',
] as const;

interface Started {
  readonly prefix: string;
  readonly replicas: readonly WeirProcess[];
}

let client: Redis;
let upstream: TestUpstream;
/** For comparison: nobody attacks it. */
let undisturbed: WeirProcess;

beforeAll(async () => {
  client = new Redis(sharedRedisUrl());
  upstream = await startUpstream();
  [undisturbed] = (await start(1)).replicas as [WeirProcess];
});
afterAll(async () => {
  await undisturbed.close();
  await upstream.close();
  client.disconnect();
});

/** These tests compare durations, which depend on how often what Redis holds is read. */
const AS_USUAL = { WEIR_TEST_PACE: '1' };

/** As `start`, until the test ends: to read what is hostile again and again takes a core. */
async function startAttacked(count: number): Promise<Started> {
  const started = await start(count);
  onTestFinished(async () => {
    await Promise.all(started.replicas.map((weir) => weir.close()));
  });
  return started;
}

/** Starts replicas that share one part of Redis. */
async function start(count: number): Promise<Started> {
  const store = uniqueRedisStore();
  const replicas: WeirProcess[] = [];
  for (let one = 0; one < count; one++) {
    replicas.push(await startWeir({ upstreamUrl: upstream.url, store, limits: PLENTY }, AS_USUAL));
  }
  return { prefix: `${store.keyPrefix}:1`, replicas };
}

/** Publishes and stores one hostile value of each kind. */
async function attack({ prefix }: Started, next: (below: number) => number): Promise<void> {
  const untilMs = Date.now() + HOUR_MS;
  for (const [topic, make] of [
    ['limits', limit],
    ['revocations', revocation],
  ] as const) {
    const model: Record<string, unknown> = make();
    const member = Object.keys(model)[next(Object.keys(model).length)] ?? '';
    const text =
      next(4) === 0 ? pick(next, TEXTS) : JSON.stringify({ ...model, [member]: VALUES[next(VALUES.length)] });
    await client.publish(`${prefix}:${topic}`, text);
    await client.zadd(`${prefix}:${topic}:record`, next(2) === 0 ? String(untilMs) : '+inf', text);
  }
  const row = next(2) === 0 ? pick(next, TEXTS) : await hostileRow(prefix, next);
  const name = next(4) === 0 ? 'n'.repeat(10_000) : `hostile-${next(20)}`;
  await client.setex(`${prefix}:{top}:${name}`, 60, row);
  await client.zadd(`${prefix}:{top}`, String(untilMs), name);
}

/** What a replica publishes, with one member replaced. */
async function hostileRow(prefix: string, next: (below: number) => number): Promise<string> {
  const names = await client.zrange(`${prefix}:{top}`, '0', '-1');
  const own = names.find((name) => /^[0-9a-f-]{36}$/.test(name));
  const row = JSON.parse((await client.get(`${prefix}:{top}:${own}`)) ?? '{}') as Record<string, unknown>;
  const pulse = (row.pulse ?? {}) as Record<string, unknown>;
  const value = VALUES[next(VALUES.length)];
  const members = [...Object.keys(row), ...Object.keys(pulse)];
  const member = members[next(members.length)] ?? '';
  return JSON.stringify(
    member in row ? { ...row, [member]: value } : { ...row, pulse: { ...pulse, [member]: value } },
  );
}

/** The statuses, and how long each request took in ms. */
interface Served {
  readonly weir: WeirProcess;
  readonly statuses: Set<number>;
  readonly durationsMs: number[];
}

const servedBy = (weir: WeirProcess): Served => ({ weir, statuses: new Set(), durationsMs: [] });

async function send({ weir, statuses, durationsMs }: Served): Promise<void> {
  const startMs = performance.now();
  const response = await sendTo(weir.url, 'GET', '/v3/things', { token: 'lonely' });
  await response.arrayBuffer();
  durationsMs.push(performance.now() - startMs);
  statuses.add(response.status);
}

const PATHS = ['/limits/live', '/revocations', '/fleet', '/usage/top?window=10m', '/metrics'];

const median = (values: readonly number[]) =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;

it('hostile messages, records and summaries end no replica, fail no request and delay nobody', async () => {
  const started = await startAttacked(2);
  const { replicas } = started;
  const { cases, next } = openFuzz(150, 30);
  // Medians of fewer would depend on the machine.
  const rounds = Math.max(cases, 150);
  const served = [...replicas, undisturbed].map(servedBy);
  for (let done = 0; done < rounds; done++) {
    const attacked = attack(started, next);
    // Side by side, so that what slows the machine slows all of them.
    for (const one of served) await send(one);
    await attacked;
    if (done % 20 === 0) for (const { adminUrl } of replicas) await expectServed(adminUrl);
  }
  for (const { weir, statuses } of served) {
    expect([...statuses]).toEqual([200]);
    expect([weir.process.exitCode, weir.process.signalCode, weir.errorLines]).toEqual([null, null, []]);
  }
  const [first, second, other] = served.map(({ durationsMs }) => median(durationsMs));
  expect(Math.max(first ?? 0, second ?? 0) / (other ?? 0)).toBeLessThan(2);

  const [replica] = replicas as [WeirProcess];
  await expectSeveralIgnored(replica.adminUrl);
  const warnings = replica.lines.filter((line) => line.includes('what Redis holds is ignored'));
  expect(warnings.length).toBeGreaterThan(0);
  expect(warnings.length).toBeLessThanOrEqual(9);
  expect(warnings.join('')).not.toContain('person_9');
});

async function expectServed(adminUrl: string): Promise<void> {
  for (const path of PATHS) {
    const response = await fetch(adminUrl + path);
    const text = await response.text();
    expect([path, response.status]).toEqual([path, 200]);
    for (const character of ['\u2028', '\u001b', '\u202e']) expect(text).not.toContain(character);
  }
}

async function expectSeveralIgnored(adminUrl: string): Promise<void> {
  const metrics = await (await fetch(`${adminUrl}/metrics`)).text();
  const counted = [...metrics.matchAll(/^weir_shared_ignored_total\{kind="(\w+)",reason="(\w+)"\} (\d+)$/gm)];
  const above = counted
    .filter(([, , , count]) => Number(count) > 0)
    .map(([, kind, reason]) => `${kind} ${reason}`);
  expect(above).toEqual(
    expect.arrayContaining([
      'limit form',
      'limit length',
      'revocation form',
      'revocation length',
      'summary form',
    ]),
  );
  expect(above.filter((one) => one.endsWith('failed'))).toEqual([]);
}

it('a message of 20 MB is ignored without being read, published or recorded', async () => {
  const { prefix, replicas } = await startAttacked(1);
  const [replica] = replicas as [WeirProcess];
  const why = 'w'.repeat(20_000_000);
  for (const [topic, make] of [
    ['limits', limit],
    ['revocations', revocation],
  ] as const) {
    const text = JSON.stringify({ ...make(), why });
    await client.publish(`${prefix}:${topic}`, text);
    await client.zadd(`${prefix}:${topic}:record`, Date.now() + HOUR_MS, text);
  }
  const ignored = async (kind: string) => {
    const metrics = await (await fetch(`${replica.adminUrl}/metrics`)).text();
    return Number(new RegExp(`ignored_total\\{kind="${kind}",reason="length"\\} (\\d+)`).exec(metrics)?.[1]);
  };
  for (const kind of ['limit', 'revocation'])
    await expect.poll(() => ignored(kind), SOON).toBeGreaterThanOrEqual(2);
  expect((await sendTo(replica.url, 'GET', '/v3/things', { token: 'lonely' })).status).toBe(200);
});

/** Enough for a few readings of the record. */
const ROUNDS = 500;

it('40,000 live limits are in force without blocking the replica', async () => {
  const { prefix, replicas } = await startAttacked(1);
  const [replica] = replicas as [WeirProcess];
  const many = Array.from({ length: 40_000 }, (_, index) =>
    JSON.stringify({ ...limit(), id: `acct_many_${index}` }),
  );
  const untilMs = Date.now() + HOUR_MS;
  for (let from = 0; from < many.length; from += 1_000) {
    const part = many.slice(from, from + 1_000);
    await client.zadd(`${prefix}:limits:record`, ...part.flatMap((text) => [untilMs, text]));
  }
  const served = [replica, undisturbed].map(servedBy);
  const known = async () =>
    Number(/^weir_live_limits (\d+)/m.exec(await (await fetch(`${replica.adminUrl}/metrics`)).text())?.[1]);
  while ((await known()) < many.length) {
    for (const one of served) await send(one);
    await pause(100);
  }
  // The record is read again and again, every few seconds.
  for (let round = 0; round < ROUNDS; round++) for (const one of served) await send(one);
  const total = (durations: readonly number[]) => durations.reduce((sum, ms) => sum + ms, 0);
  const [attacked = [], other = []] = served.map(({ durationsMs }) => durationsMs);
  expect(total(attacked) / total(other)).toBeLessThan(2);
  expect(
    (await fetch(`${replica.adminUrl}/limits/live`).then((response) => response.json())) as object[],
  ).toHaveLength(40_000);
});

import { expect, it, vi } from 'vitest';
import { type Pulse, readPulse, SERIES } from '../../../../src/admin/fleet/pulse.ts';
import type { Range } from '../../../../src/admin/fleet/ranges.ts';
import { Recorder } from '../../../../src/admin/fleet/recorder.ts';
import { Refusals } from '../../../../src/admin/fleet/refusals.ts';
import { fleetSnapshot } from '../../../../src/admin/fleet/snapshot.ts';
import { SharedClock } from '../../../../src/facts/shared-clock.ts';
import { rank } from '../../../../src/observe/usage/talkers.ts';

const NOTHING = { requests: 0, points: 0, refused: 0, degraded: 0, failed: 0, durations: [0, 0, 0, 0] };

/** A recorder whose counters the test sets. */
function recorder(startMs: number) {
  const counted = { ...NOTHING };
  const one = new Recorder(
    {
      metrics: {
        requestTotals: () => ({ ...counted }),
        upstreamsInDemand: () => [],
        storeTotals: () => ({ breaker: 'closed', calls: [0, 4], unsafeSettings: 0 }),
        limitsVersion: () => 'abc',
        operationsVersion: () => 'def',
        journalLagSeconds: () => 61.5,
      },
      storeKind: 'memory',
      storeHealth: { async measure() {}, last: { measuredAtMs: 0, problem: null } },
      refusals: new Refusals(() => 0),
      changes: { latest: [] },
      certificateEnds: new Map([
        ['listen', 2_000_000],
        ['admin', 1_000_000],
      ]),
      isReady: () => true,
      liveLimits: () => 2,
      clock: new SharedClock(),
    },
    startMs,
  );
  return { counted, one };
}

const published = (one: Recorder): Pulse =>
  readPulse({ pulse: JSON.parse(JSON.stringify(one.pulse())) }, 111_000) ??
  expect.fail('the pulse is not readable');

const requestsOf = ({ seconds }: Pulse) => seconds.map(({ counts }) => counts[0]);

it('attributes what was counted to the second that has ended, and nothing to missed ones', () => {
  const { counted, one } = recorder(100_000);
  counted.requests = 5;
  one.sample(100_900);
  expect(requestsOf(published(one))).toEqual([]);
  one.sample(101_010);
  counted.requests = 12;
  one.sample(104_000);
  expect(published(one)).toMatchObject({
    second: 103,
    limits: 'abc',
    liveLimits: 2,
    certificateEndsMs: 1_000_000,
    journalLagSeconds: 61.5,
    totals: { requests: 12 },
  });
  expect(requestsOf(published(one))).toEqual([5, 0, 0, 7]);
});

it('a clock that was set back is followed at once, and what was counted keeps its distance to now', () => {
  const { counted, one } = recorder(1_000_000);
  const passSeconds = (from: number, to: number) => {
    for (let second = from; second <= to; second++) {
      counted.requests += 2;
      one.sample(second * 1_000);
    }
  };
  passSeconds(1_001, 1_100);
  passSeconds(501, 530);
  counted.requests += 5;
  one.sample(531_000);
  const pulse = published(one);
  expect(pulse.second).toBe(530);
  expect(requestsOf(pulse)).toEqual([...Array.from({ length: 59 }, () => 2), 5]);
  const [tenMinutes] = pulse.history;
  expect(tenMinutes?.slot).toBe(52);
  expect(tenMinutes?.slices.map(({ counts }) => counts[0])).toEqual(Array.from({ length: 13 }, () => 20));
});

it('a second that a clock repeats is added to the next one', () => {
  const { counted, one } = recorder(100_000);
  for (const nowMs of [101_000, 102_000, 101_900, 102_500, 103_000]) {
    counted.requests += 1;
    one.sample(nowMs);
  }
  expect(published(one).second).toBe(102);
  expect(requestsOf(published(one))).toEqual([1, 1, 3]);
});

it('its memory is unknown while no file can be opened', () => {
  const { one } = recorder(100_000);
  expect(published(one).memoryBytes).toBeGreaterThan(0);
  const rss = vi.spyOn(process.memoryUsage, 'rss').mockImplementation(() => {
    throw Object.assign(new Error('EMFILE: too many open files, uv_resident_set_memory'), { code: 'EMFILE' });
  });
  try {
    expect(published(one)).toMatchObject({ name: expect.any(String), memoryBytes: null });
  } finally {
    rss.mockRestore();
  }
});

it('keeps one minute', () => {
  const { counted, one } = recorder(0);
  for (let second = 1; second <= 90; second++) {
    counted.requests += second;
    one.sample(second * 1_000);
  }
  expect(requestsOf(published(one))).toEqual(Array.from({ length: 60 }, (_, index) => index + 31));
  one.sample(10_000_000);
  expect(requestsOf(published(one))).toEqual(Array.from({ length: 60 }, () => 0).fill(0));
});

const snapshotOf = (pulses: Record<string, Pulse>, nowMs: number, range: Range = '1m') =>
  fleetSnapshot(
    { pulses: new Map(Object.entries(pulses)), nowMs, othersUnknownSinceMs: null },
    { top: { ...rank([], '10s'), asOf: '', othersUnknownSince: null }, range },
  );

it('replicas add up second by second, and one whose clock is wrong is aligned by its last second', () => {
  const [right, late] = [recorder(100_000), recorder(50_000)];
  for (let second = 1; second <= 10; second++) {
    for (const { counted, one } of [right, late]) {
      counted.requests += second;
      counted.points += 2 * second;
      counted.refused += second === 10 ? 5 : 0;
      counted.durations = [counted.requests, 0, 0, 0];
      one.sample((one === right.one ? 100_000 : 50_000) + second * 1_000);
    }
  }
  const pulses = { right: published(right.one), late: published(late.one) };
  // The newest second of the fleet is 109: at 111 s, every replica has published it.
  const { series, totals, rates, second, replicas } = snapshotOf(pulses, 111_000);
  expect(second).toBe(109);
  expect(series.requests.slice(-3)).toEqual([16, 18, 20]);
  expect(series.points.slice(-1)).toEqual([40]);
  expect(totals).toEqual({ requests: 110, points: 220, refused: 10, degraded: 0, failed: 0 });
  expect(rates).toMatchObject({ requestsPerSecond: 16, pointsPerSecond: 32, p50Ms: 0.25 });
  expect(rates.refusedShare).toBeCloseTo(10 / 110);
  expect(replicas.map(({ id, rates: own }) => [id, own.requestsPerSecond])).toEqual([
    ['late', 8],
    ['right', 8],
  ]);
  expect(Object.keys(series)).toEqual([
    ...['stepSeconds', 'endSecond', 'partialSteps'],
    ...SERIES,
    ...['p50Ms', 'p99Ms'],
  ]);
});

it('ten minutes and an hour are kept as sums, and a replica that is silent leaves its part of them open', () => {
  const [one, other] = [recorder(0), recorder(0)];
  for (let second = 1; second <= 3_700; second++) {
    for (const { counted, one: recording } of [one, other]) {
      counted.requests += 2;
      recording.sample(second * 1_000);
    }
  }
  const nowMs = 3_702_000;
  const taken = (of: Recorder, takenAtMs: number) => ({ ...published(of), takenAtMs });
  const pulses = { one: taken(one.one, nowMs), other: taken(other.one, nowMs) };
  const tenMinutes = snapshotOf(pulses, nowMs, '10m').series;
  expect(tenMinutes).toMatchObject({ stepSeconds: 10, endSecond: 3_700, partialSteps: 0 });
  expect(tenMinutes.requests).toEqual(Array.from({ length: 60 }, () => 4));
  const hour = snapshotOf(pulses, nowMs, '1h').series;
  expect(hour).toMatchObject({ stepSeconds: 60, endSecond: 3_660, partialSteps: 0 });
  expect(hour.requests).toEqual(Array.from({ length: 60 }, () => 4));

  // It last reported 25 seconds ago.
  const silent = { ...pulses, other: taken(other.one, nowMs - 25_000) };
  expect(snapshotOf(silent, nowMs, '10m').series.partialSteps).toBe(3);
  expect(snapshotOf(silent, nowMs).series.partialSteps).toBe(24);
});

it('a time before any replica ran is no time without requests', () => {
  const { counted, one } = recorder(100_000);
  counted.requests = 5;
  one.sample(101_000);
  one.sample(105_000);
  const { requests } = snapshotOf({ one: published(one) }, 106_000).series;
  expect(requests.slice(-6)).toEqual([null, 5, 0, 0, 0, 0].slice(0, 6));
});

it.each([
  null,
  {},
  { pulse: null },
  { pulse: { format: 2 } },
  { pulse: { format: 1 } },
  {
    pulse: { format: 1, name: 'a', limits: '', store: { kind: 'redis', breaker: 'closed' }, totals: NOTHING },
  },
])('%j is no pulse', (value) => {
  expect(readPulse(value, 0)).toBeUndefined();
});

it('a queue, a change or a refusal that cannot be read hides nothing else of a replica, and is counted', () => {
  const { one } = recorder(100_000);
  const change = { atMs: 1, name: 'limits.changed', text: 'account-read 5 -> 6', count: 1 };
  const pulse = { ...one.pulse(), queues: [{ prefix: '\u0007' }], changes: [{}, change], refusals: ['none'] };
  let ignored = 0;
  const add = (_: unknown, count = 1) => {
    ignored += count;
  };
  const read = readPulse({ pulse: JSON.parse(JSON.stringify(pulse)) }, 111_000, { add });
  expect(read).toMatchObject({ queues: [], changes: [change], refusals: [], limits: 'abc' });
  expect(ignored).toBe(3);
});

import { Writable } from 'node:stream';
import { expect, it } from 'vitest';
import { Fleet, type FleetReading } from '../../../src/admin/fleet/fleet.ts';
import { sumOf } from '../../../src/admin/fleet/owner-sum.ts';
import type { Pulse } from '../../../src/admin/fleet/pulse.ts';
import { NO_LOSSES } from '../../../src/admin/fleet/snapshot.ts';
import { FleetFeed } from '../../../src/console/feed.ts';
import { Blocks } from '../../../src/facts/blocks.ts';
import { UsageBatch } from '../../../src/observe/usage/batch.ts';
import { Talkers } from '../../../src/observe/usage/talkers.ts';
import type { Window } from '../../../src/observe/usage/windows.ts';

const PULSE: Pulse = {
  format: 1,
  name: 'here',
  adminUrl: null,
  history: [],
  startedAtMs: 0,
  isReady: true,
  limits: 'abc',
  operations: '',
  version: '',
  memoryBytes: 1,
  certificateEndsMs: null,
  journalLagSeconds: null,
  changes: [],
  queues: [],
  liveLimits: 0,
  clockOffsetMs: null,
  takenAtMs: 0,
  store: {
    kind: 'memory',
    breaker: 'closed',
    unsafeSettings: 0,
    p99Ms: null,
    measuredAtMs: 0,
    problem: null,
    share: null,
  },
  totals: { requests: 0, points: 0, refused: 0, degraded: 0, failed: 0 },
  second: 0,
  seconds: [],
  refusals: [],
};

/** Notes for which times it ranks. */
class NotedFleet extends Fleet {
  readonly ranked: string[] = [];

  override async read(): Promise<FleetReading> {
    const reading = await super.read();
    const top = (window: Window) => {
      this.ranked.push(window);
      return reading.top(window);
    };
    return { ...reading, top };
  }
}

/** A stream that a reader never takes from, unless `reads`. */
function output(reads: boolean): { readonly stream: Writable; readonly events: string[] } {
  const events: string[] = [];
  const stream = new Writable({
    write(chunk: Buffer, _encoding, done) {
      events.push(chunk.toString());
      if (reads) done();
    },
  });
  return { stream, events };
}

it('a reader that takes nothing gets one event, not a growing queue, and delays nobody', async () => {
  let read = 0;
  const fleet = new Fleet(
    'here',
    {
      talkers: new Talkers(new UsageBatch()),
      pulse: () => ({ ...PULSE, startedAtMs: ++read }),
      nowMs: Date.now,
      blocks: new Blocks({ nowMs: Date.now }),
      ignored: { add() {} },
    },
    undefined,
  );
  const feed = new FleetFeed(fleet, { sumOf: async () => sumOf([], 1) }, async () => NO_LOSSES);
  const [stuck, attentive, second] = [output(false), output(true), output(true)];
  const query = { window: '10s', range: '1m', owner: undefined } as const;
  const ends = [stuck, attentive, second].map(({ stream }) => feed.stream(stream, query));
  await expect
    .poll(() => attentive.events.length, { timeout: 30_000, interval: 50 })
    .toBeGreaterThanOrEqual(3);
  expect(stuck.events).toHaveLength(1);
  expect(stuck.stream.writableLength).toBe(stuck.events[0]?.length);
  // Streams that ask at the same time share a reading.
  for (const { events } of [stuck, attentive, second]) expect(events[0]).toContain('"startedAtMs":1,');
  feed.close();
  await Promise.all(ends);
  expect([stuck.stream.destroyed, attentive.stream.writableEnded]).toEqual([true, true]);
});

it('the last ten seconds are ranked once for all that a page shows of them', async () => {
  const nowMs = () => 1_000_000;
  const fleet = new NotedFleet(
    'here',
    {
      talkers: new Talkers(new UsageBatch()),
      blocks: new Blocks({ nowMs }),
      pulse: () => PULSE,
      nowMs,
      ignored: { add() {} },
    },
    undefined,
  );
  const feed = new FleetFeed(fleet, { sumOf: async () => sumOf([], 1) }, async () => NO_LOSSES);
  await feed.snapshot({ window: '10s', range: '1m' });
  expect(fleet.ranked).toEqual(['10s']);
  await feed.snapshot({ window: '1m', range: '1m' });
  expect(fleet.ranked).toEqual(['10s', '1m', '10s']);
});

it('a stream of the changes alone ranks nobody', async () => {
  const changes = [{ atMs: 900_000, name: 'limits', text: 'other limits are in force', count: 1 }];
  const fleet = new NotedFleet(
    'here',
    {
      talkers: new Talkers(new UsageBatch()),
      blocks: new Blocks({ nowMs: () => 1_000_000 }),
      pulse: () => ({ ...PULSE, changes }),
      nowMs: () => 1_000_000,
      ignored: { add() {} },
    },
    undefined,
  );
  const feed = new FleetFeed(fleet, { sumOf: async () => sumOf([], 1) }, async () => NO_LOSSES);
  const { stream, events } = output(true);
  const owner = { scope: 'account', id: 'acct_1' } as const;
  const end = feed.stream(stream, { window: '10s', range: '1m', owner, hasOnlyChanges: true });
  await expect.poll(() => events.length, { timeout: 30_000, interval: 50 }).toBeGreaterThanOrEqual(1);
  feed.close();
  await end;
  const data = { second: 998, changes: [{ ...changes[0], replicas: 1 }] };
  expect(events[0]).toBe(`event: changes\ndata: ${JSON.stringify(data)}\n\nevent: refusals\ndata: []\n\n`);
  expect(fleet.ranked).toEqual([]);
});

import { Fleet } from '../../src/admin/fleet/fleet.ts';
import { Recorder } from '../../src/admin/fleet/recorder.ts';
import { Refusals } from '../../src/admin/fleet/refusals.ts';
import { Blocks } from '../../src/facts/blocks.ts';
import { SharedClock } from '../../src/facts/shared-clock.ts';
import { SECONDS } from '../../src/observe/metrics/fast-metrics.ts';
import { UsageBatch } from '../../src/observe/usage/batch.ts';
import { Talkers } from '../../src/observe/usage/talkers.ts';
import { sharedByRedis } from '../../src/store/redis/shared/shared-by-redis.ts';
import { FinishedRequests } from '../load/finished-requests.ts';

const SECOND_MS = 1_000;

/** Replicas that publish what a busy one would, without serving requests. */
export interface IdleReplicas {
  stop(): Promise<void>;
}

/** Starts replicas that each claim a few requests a second of every Account, more of the first ones. */
export function startReplicas(redisUrl: string, count: number, accounts: number): IdleReplicas {
  const requests = new FinishedRequests(accounts);
  const replicas = Array.from({ length: count }, (_, index) => startReplica(redisUrl, index, requests));
  return { stop: async () => void (await Promise.all(replicas.map((replica) => replica.stop()))) };
}

function startReplica(url: string, index: number, requests: FinishedRequests) {
  const batch = new UsageBatch();
  const talkers = new Talkers(batch);
  const totals = { requests: 0, points: 0, refused: 0, degraded: 0, failed: 0 };
  const durations = SECONDS.map(() => 0);
  const recorder = new Recorder({
    metrics: {
      requestTotals: () => ({ ...totals, durations: [...durations] }),
      upstreamsInDemand: () => [],
      storeTotals: () => ({ breaker: 'closed', calls: [...durations], unsafeSettings: 0 }),
      limitsVersion: () => 'a1b2c3',
      operationsVersion: () => 'def',
      journalLagSeconds: () => undefined,
    },
    storeHealth: {
      async measure() {},
      get last() {
        return { measuredAtMs: Date.now(), problem: null };
      },
    },
    storeKind: 'redis',
    refusals: new Refusals(() => Date.now()),
    changes: { latest: [] },
    certificateEnds: new Map(),
    isReady: () => true,
    liveLimits: () => 0,
    clock: new SharedClock(),
  });
  const shared = sharedByRedis({ kind: 'redis', url, keyPrefix: 'weir', deadlineMs: 1_000 }, () => {});
  const board = shared.openBoard('top', `replica-${index}`);
  const fleet = new Fleet(
    `replica-${index}`,
    {
      talkers,
      blocks: new Blocks({ nowMs: Date.now }),
      pulse: () => recorder.pulse(),
      nowMs: Date.now,
      ignored: { add() {} },
    },
    board,
  );
  const claim = () => {
    const nowMs = performance.now();
    for (let place = 0; place < requests.accounts; place++) {
      const times = 1 + Math.floor((Math.random() * 40) / (place + 1));
      for (let time = 0; time < times; time++) batch.requestFinished(requests.of(place), nowMs);
      totals.requests += times;
      totals.points += times;
      const bucket = Math.floor(Math.random() * 5);
      durations[bucket] = (durations[bucket] ?? 0) + times;
    }
  };
  claim();
  recorder.start();
  const timer = setInterval(claim, SECOND_MS);
  return {
    async stop() {
      clearInterval(timer);
      recorder.stop();
      await fleet.close();
    },
  };
}

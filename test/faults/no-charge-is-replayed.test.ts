import { setTimeout as pause } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { bucketKey } from '../../src/store/keys.ts';
import { openStore } from '../../src/store/open-store.ts';
import type { Charge, Store } from '../../src/store/store.ts';
import { type StoreObserver, silentObserver } from '../../src/store/store-observer.ts';
import { type RedisServer, startRedisServer } from '../fixtures/redis-server.ts';
import { startTcpProxy, type TcpProxy } from '../fixtures/tcp-proxy.ts';
import { DEADLINE_MS } from './fault.ts';

const LIMIT = 100_000;
/** For tests in which the connection has to end before the deadline, on any machine. */
const NO_DEADLINE_MS = 600_000;
const REFUSED = 2000;

function chargeOf(id: string, cost = 1): Charge {
  return {
    buckets: [{ key: bucketKey('weir', id, 'account-read', id), limit: LIMIT, windowSeconds: 60 }],
    cost,
  };
}

/** A store whose connection can be disturbed, and a witness whose connection cannot. */
async function open(
  observer: Partial<StoreObserver> = {},
  deadlineMs = DEADLINE_MS,
): Promise<{ store: Store; witness: Store; line: TcpProxy; server: RedisServer }> {
  const server = await startRedisServer();
  const line = await startTcpProxy(server.port);
  const url = `redis://127.0.0.1:${line.port}`;
  const store = openStore({ kind: 'redis', url, deadlineMs }, { ...silentObserver, ...observer });
  const witness = openStore({ kind: 'redis', url: server.url, deadlineMs: 5000 });
  onTestFinished(async () => {
    await store.close();
    await witness.close();
    await line.stop();
    await server.stop();
  });
  await untilCounted(store, chargeOf('warm'));
  await untilCounted(witness, chargeOf('warm'));
  return { store, witness, line, server };
}

async function untilCounted(store: Store, charge: Charge): Promise<void> {
  while ((await store.charge(charge)).outcome === 'uncounted') await pause(5);
}

async function pointsIn(witness: Store, id: string): Promise<number> {
  const peeked = await witness.peek(chargeOf(id));
  if (peeked.outcome === 'uncounted') throw new Error(peeked.reason);
  return LIMIT - (peeked.buckets[0]?.remaining ?? 0);
}

test('a charge whose reply is lost is counted once, and its request is served uncounted', async () => {
  const { store, witness, line } = await open({}, NO_DEADLINE_MS);
  line.set({ kind: 'answers held' });
  const decision = store.charge(chargeOf('lost', 7));
  await expect.poll(() => pointsIn(witness, 'lost'), { timeout: 60_000 }).toBe(7);
  line.hangUp();
  line.set({ kind: 'open' });
  expect(await decision).toEqual({ outcome: 'uncounted', reason: 'disconnected' });
  await untilCounted(store, chargeOf('again'));
  expect(await pointsIn(witness, 'lost')).toBe(7);
});

test('charges made without a connection are never sent, not even when it is back', async () => {
  const { store, witness, line } = await open({}, NO_DEADLINE_MS);
  line.set({ kind: 'cut at the next answer' });
  expect(await store.charge(chargeOf('first'))).toEqual({ outcome: 'uncounted', reason: 'disconnected' });
  for (let turn = 0; turn < 50; turn++) {
    expect((await store.charge(chargeOf('queued'))).outcome).toBe('uncounted');
    await pause(1);
  }
  line.set({ kind: 'open' });
  await untilCounted(store, chargeOf('again'));
  expect(await pointsIn(witness, 'queued')).toBe(0);
});

test('points of late answers are counted separately', async () => {
  let late = 0;
  let uncounted = 0;
  const { store, witness, line } = await open({
    answeredLate: (points) => (late += points),
    uncounted: (reason, points) => {
      if (reason === 'deadline') uncounted += points;
    },
  });
  line.set({ kind: 'answers held' });
  expect(await store.charge(chargeOf('late', 7))).toEqual({ outcome: 'uncounted', reason: 'deadline' });
  expect(uncounted).toBe(7);
  line.set({ kind: 'open' });
  await expect.poll(() => late, { timeout: 60_000 }).toBe(7);
  expect(await pointsIn(witness, 'late')).toBe(7);
});

/** Charges go on through the fault; each asks for one point. */
test.each([
  {
    what: 'Redis hangs until its connections are given up, and goes on',
    async spoil({ server, untilUncounted }: Faulty) {
      server.signal('SIGSTOP');
      await untilUncounted('disconnected');
      server.signal('SIGCONT');
    },
  },
  {
    what: 'the answers come late, and then the connection breaks',
    async spoil({ line, untilUncounted }: Faulty) {
      line.set({ kind: 'slow', delayMs: 200 });
      await untilUncounted('deadline');
      line.set({ kind: 'cut at the next answer' });
      await untilUncounted('disconnected');
      line.set({ kind: 'open' });
    },
  },
  {
    what: 'the connection breaks again and again',
    async spoil({ line, untilUncounted, untilCounted }: Faulty) {
      for (let turn = 0; turn < 3; turn++) {
        line.set({ kind: 'cut at the next answer' });
        await untilUncounted('disconnected');
        line.set({ kind: 'open' });
        await untilCounted();
      }
    },
  },
])(
  'when $what, every point that is counted in spite of its request is late or unanswered',
  async ({ spoil }) => {
    const seen = { late: 0, unanswered: 0 };
    const { store, witness, line, server } = await open({
      answeredLate: (points) => (seen.late += points),
      unanswered: (points) => (seen.unanswered += points),
    });
    const charge = chargeOf('all');
    let admitted = 0;
    let last = '';
    let isOver = false;
    const load = Promise.all(
      Array.from({ length: 8 }, async () => {
        while (!isOver) {
          const decision = await store.charge(charge);
          if (decision.outcome === 'admitted') admitted += 1;
          last = decision.outcome === 'uncounted' ? decision.reason : 'counted';
          await pause(1);
        }
      }),
    );
    const untilLast = (outcome: string) =>
      expect.poll(() => last, { timeout: 60_000, interval: 1 }).toBe(outcome);
    await spoil({ line, server, untilUncounted: untilLast, untilCounted: () => untilLast('counted') });
    await untilLast('counted');
    isOver = true;
    await load;
    const escaped = (await pointsIn(witness, 'all')) - admitted;
    expect(escaped, `late ${seen.late}, unanswered ${seen.unanswered}`).toBeGreaterThanOrEqual(seen.late);
    expect(escaped, `late ${seen.late}`).toBeLessThanOrEqual(seen.late + seen.unanswered);
    expect(seen.late + seen.unanswered).toBeGreaterThan(0);
  },
);

interface Faulty {
  readonly line: TcpProxy;
  readonly server: RedisServer;
  untilUncounted(reason: string): Promise<unknown>;
  untilCounted(): Promise<unknown>;
}

test('an open breaker allows only occasional probes, and no request waits', async () => {
  const { store, line } = await open();
  const atStart = line.bytesFromClients;
  await untilCounted(store, chargeOf('size'));
  const bytesOfCharge = line.bytesFromClients - atStart;
  line.set({ kind: 'black hole' });
  await Promise.all([1, 2, 3].map(() => store.charge(chargeOf('trip'))));
  for (let turn = 0; turn < 3; turn++) await store.charge(chargeOf('trip'));
  const before = line.bytesFromClients;
  const startMs = performance.now();
  for (let turn = 0; turn < REFUSED; turn++) {
    expect((await store.charge(chargeOf('refused'))).outcome).toBe('uncounted');
  }
  const elapsedMs = performance.now() - startMs;
  expect(elapsedMs / REFUSED).toBeLessThan(DEADLINE_MS / 2);
  expect(line.bytesFromClients - before).toBeLessThan((bytesOfCharge * REFUSED) / 10);
});

import { Redis } from 'ioredis';
import { expect, onTestFinished, test } from 'vitest';
import { openStore } from '../../src/store/open-store.ts';
import { silentObserver } from '../../src/store/store-observer.ts';
import { startRedisServer } from '../fixtures/redis-server.ts';

async function startServer() {
  const server = await startRedisServer({ args: ['--databases', '4'] });
  const admin = new Redis(server.port);
  onTestFinished(async () => {
    admin.disconnect();
    await server.stop();
  });
  return { ...server, admin };
}

const CHARGE = { buckets: [{ key: 'k', limit: 5, windowSeconds: 60 }], cost: 1 };

function open(url: string, protocol: 2 | 3) {
  const failures: string[] = [];
  const store = openStore(
    { kind: 'redis', url, deadlineMs: 5000, protocol },
    { ...silentObserver, connectionFailed: (reason, message) => void failures.push(`${reason}: ${message}`) },
  );
  onTestFinished(() => store.close());
  return { store, failures };
}

test.each([2, 3] as const)('a database that Redis does not have counts nothing, RESP%i', async (protocol) => {
  const { url, admin } = await startServer();
  const { store, failures } = open(`${url}/4`, protocol);
  const outcomes = new Set<string>();
  await expect
    .poll(async () => {
      outcomes.add((await store.charge(CHARGE)).outcome);
      return failures.length;
    })
    .toBeGreaterThan(3);
  expect(new Set(failures)).toEqual(new Set(['error: ERR DB index is out of range']));
  expect([...outcomes]).toEqual(['uncounted']);
  expect(await admin.keys('*')).toEqual([]);
});

test.each([2, 3] as const)(
  'a user without SELECT counts nothing until it has it, RESP%i',
  async (protocol) => {
    const { url, admin } = await startServer();
    await admin.acl('SETUSER', 'weir', 'on', '>pw', '~*', '&*', '+@all', '-select');
    const { store, failures } = open(`${url.replace('//', '//weir:pw@')}/3`, protocol);
    await expect.poll(() => failures.length).toBeGreaterThan(3);
    expect((await store.charge(CHARGE)).outcome).toBe('uncounted');
    expect(failures[0]).toMatch(/^auth: NOPERM .*select/);
    await admin.acl('SETUSER', 'weir', '+select');
    await expect.poll(async () => (await store.charge(CHARGE)).outcome).toBe('admitted');
    expect(await admin.keys('*')).toEqual([]);
    await admin.select(3);
    expect(await admin.keys('*')).toEqual(['k']);
  },
);

test('a user that may not read buckets has the error of Redis in the log, and no call that counts again', async () => {
  const { url, admin } = await startServer();
  await admin.acl('SETUSER', 'weir', 'on', '>pw', '~*', '&*', '+@all', '-getrange');
  const problems: (string | undefined)[] = [];
  const calls: { readonly charges: number; readonly uncounted: number }[] = [];
  const store = openStore(
    { kind: 'redis', url: url.replace('//', '//weir:pw@'), deadlineMs: 5000 },
    {
      ...silentObserver,
      uncounted: (_reason, _points, problem) => void problems.push(problem),
      called: (charges, _roundTripUs, uncounted) => void calls.push({ charges, uncounted }),
    },
  );
  onTestFinished(() => store.close());
  await expect.poll(() => store.charge(CHARGE)).toMatchObject({ outcome: 'uncounted', reason: 'auth' });
  expect(problems.at(-1)).toMatch(/user executing the script can't run|NOPERM|ACL failure/);
  expect(calls).toEqual([{ charges: 1, uncounted: 1 }]);
});

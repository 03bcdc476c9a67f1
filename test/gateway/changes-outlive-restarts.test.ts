import { hostname } from 'node:os';
import { Redis } from 'ioredis';
import { expect, it, onTestFinished } from 'vitest';
import type { RecordedChange, ShownChange } from '../../src/admin/history/change.ts';
import { ChangeHistory } from '../../src/admin/history/change-history.ts';
import { changes } from '../../src/commands/changes.ts';
import { pace } from '../../src/domain/pace.ts';
import { sharedByRedis } from '../../src/store/redis/shared/shared-by-redis.ts';
import { startGateway, type TestGateway } from '../fixtures/gateway.ts';
import { startRedisServer } from '../fixtures/redis-server.ts';
import { sharedRedisUrl, uniqueRedisStore } from '../fixtures/redis-url.ts';
import { runHere } from '../fixtures/run-here.ts';

const SOON = { timeout: 20_000, interval: 50 };

async function start(options: Parameters<typeof startGateway>[0] = {}): Promise<TestGateway> {
  const gateway = await startGateway(options);
  onTestFinished(() => gateway.close());
  return gateway;
}

const listed = async ({ adminUrl }: TestGateway) =>
  (await (await fetch(`${adminUrl}/changes?since=1h`)).json()) as ShownChange[];

const kindsAt = async (gateway: TestGateway) => (await listed(gateway)).map(({ kind }) => kind);

const block = ({ adminUrl }: TestGateway) =>
  fetch(`${adminUrl}/blocks/accounts/acct_1`, {
    method: 'PUT',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ why: 'leak', by: 'alice' }),
  });

it('a block is listed once, at its time, by replicas that started after it as well', async () => {
  const store = uniqueRedisStore();
  const before = [await start({ store }), await start({ store })] as const;
  await block(before[0]);
  const ofBlock = async (gateway: TestGateway) =>
    (await listed(gateway)).filter(({ kind }) => kind === 'block.made');
  await expect.poll(() => ofBlock(before[1]), SOON).toHaveLength(1);
  const first = await ofBlock(before[1]);
  const made = { subject: 'acct_1', text: 'account acct_1', by: 'alice', why: 'leak', replica: hostname() };
  expect(first).toMatchObject([made]);
  const after = await start({ store });
  for (const gateway of before) await gateway.close();
  await expect
    .poll(() => kindsAt(after), SOON)
    .toEqual(expect.arrayContaining(['replica.left', 'replica.joined', 'block.made']));
  expect(await ofBlock(after)).toEqual(first);
  const times = (await listed(after)).map(({ at }) => at);
  expect(times).toEqual(times.toSorted().reverse());
  const { stdout } = await runHere(() => changes({ url: after.adminUrl, since: '1h' }));
  expect(stdout).toMatch(/block\.made +acct_1 +account acct_1 +leak \(alice\) at \S/);
});

it('blocks, live limits and revocations are listed with the replica at which they were made', async () => {
  const store = uniqueRedisStore();
  const gateways = [await start({ store }), await start({ store })];
  const made = { atMs: Date.now(), untilMs: Date.now() + 3_600_000 };
  const reason = { why: 'leak', by: 'alice' };
  const client = new Redis(sharedRedisUrl());
  onTestFinished(() => client.disconnect());
  const publish = (topic: string, message: object) =>
    client.publish(`${store.keyPrefix}:1:${topic}`, JSON.stringify(message));
  await publish('blocks', { scope: 'account', id: 'acct_1', ...made, ...reason, replica: 'weir-9' });
  await publish('limits', {
    bucket: 'account-read',
    id: 'acct_1',
    limit: 5,
    ...made,
    ...reason,
    replica: 'weir-8',
  });
  await publish('revocations', { kind: 'principal', target: 'person_1', ...made, reason, replica: 'weir-7' });
  for (const gateway of gateways) {
    await expect
      .poll(async () => (await listed(gateway)).filter(({ by }) => by === 'alice'), SOON)
      .toEqual(
        expect.arrayContaining([
          expect.objectContaining({ kind: 'block.made', replica: 'weir-9' }),
          expect.objectContaining({
            kind: 'limits.changed',
            subject: 'acct_1',
            text: expect.stringMatching(/^account-read 20 -> 5 until /),
            replica: 'weir-8',
          }),
          expect.objectContaining({ kind: 'revocation.made', subject: 'person_1', replica: 'weir-7' }),
        ]),
      );
    const { stdout } = await runHere(() => changes({ url: gateway.adminUrl, since: '1h' }));
    expect(stdout).toMatch(/limits\.changed +acct_1 +account-read 20 -> 5 until /);
  }
});

it('other costs or limits that a restart brought are listed, once', async () => {
  const store = uniqueRedisStore();
  const list = (cost: number) => ({ list: [{ method: 'GET', path: '/v3/big', cost }], unlisted: 'charge' });
  const startWith = (cost: number) => start({ store, settings: { operations: list(cost) } });
  const before = await startWith(5);
  const joined = async (gateway: TestGateway) =>
    (await kindsAt(gateway)).filter((kind) => kind === 'replica.joined').length;
  await expect.poll(() => joined(before), SOON).toBe(1);
  const after = await startWith(7);
  await expect.poll(() => joined(after), SOON).toBe(2);
  await startWith(7);
  await expect.poll(() => joined(after), SOON).toBe(3);
  const changed = (await listed(after)).filter(({ kind }) => /^(operations|limits)\./.test(kind));
  expect(changed).toMatchObject([
    {
      kind: 'operations.changed',
      subject: 'operations',
      text: expect.stringMatching(/^operations \w{8} -> \w{8}, by a restart$/),
    },
  ]);
});

/** More than are written at a time, and no more than wait. */
const MANY = 900;

function opened(store: ReturnType<typeof uniqueRedisStore>): ChangeHistory {
  return new ChangeHistory(
    sharedByRedis(store, () => {}),
    () => Date.now(),
  );
}

function change(index: number): RecordedChange {
  const nobody = { by: null, why: null, replica: null };
  return { atMs: Date.now(), kind: 'limits.changed', subject: `acct_${index}`, text: `${index}`, ...nobody };
}

const written = async (store: ReturnType<typeof uniqueRedisStore>) =>
  (await opened(store).read()).changes.length;

it('many changes that were made at once are written one after the other, without a pause', async () => {
  const usual = pace.triesMs;
  onTestFinished(() => {
    Object.assign(pace, { triesMs: usual });
  });
  const store = uniqueRedisStore();
  const history = opened(store);
  history.add(change(0));
  await expect.poll(() => written(store), SOON).toBe(1);
  Object.assign(pace, { triesMs: 3_600_000 });
  for (let index = 1; index < MANY; index++) history.add(change(index));
  await expect.poll(() => written(store), SOON).toBe(MANY);
});

it('a replica that stops writes all of its changes, the last of which says that it left', async () => {
  const store = uniqueRedisStore();
  const history = opened(store);
  history.add(change(0));
  await expect.poll(() => written(store), SOON).toBe(1);
  for (let index = 1; index < MANY; index++) history.add(change(index));
  await history.close();
  expect(await written(store)).toBe(MANY);
});

it.each([
  ['serve', '1 request served uncounted'],
  ['reject', '0 requests served uncounted, and 1 answered with 503'],
])(
  'an outage of Redis is listed when it is over, with the requests that were not counted: %s',
  async (onStoreFailure, text) => {
    const server = await startRedisServer();
    onTestFinished(() => server.stop());
    const gateway = await start({ store: { ...uniqueRedisStore(server.url), onStoreFailure } });
    await expect.poll(() => kindsAt(gateway), SOON).toContain('replica.joined');
    await server.kill();
    const fleet = async () => (await fetch(`${gateway.adminUrl}/fleet`)).text();
    // A 503 because the upstream is away is no matter of the store.
    await gateway.upstream.close();
    expect(await gateway.send('GET', '/v3/things')).toMatchObject({ status: 503 });
    expect((await fetch(`${gateway.adminUrl}/changes`)).status).toBe(503);
    await expect.poll(fleet, SOON).toMatch(/"problem":"/);
    await server.start();
    await expect
      .poll(async () => (await listed(gateway)).map(({ kind, text }) => `${kind}: ${text}`), SOON)
      .toContain(`store.back: ${text}`);
    expect(await kindsAt(gateway)).toContain('store.lost');
  },
);

it('a memory store keeps its changes in the process, and a wrong time is refused', async () => {
  const gateway = await start();
  await block(gateway);
  expect(await kindsAt(gateway)).toEqual(expect.arrayContaining(['block.made', 'replica.joined']));
  expect((await fetch(`${gateway.adminUrl}/changes?since=8d`)).status).toBe(400);
});

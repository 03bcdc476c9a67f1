import { writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { dirname, join } from 'node:path';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import type { ShownChange } from '../../src/admin/history/change.ts';
import { newCertificate } from '../fixtures/certificate.ts';
import { LIMITS } from '../fixtures/configuration.ts';
import { sharedRedisUrl, uniqueRedisStore } from '../fixtures/redis-url.ts';
import { startUpstream, type TestUpstream } from '../fixtures/upstream.ts';
import { startWeir, type WeirProcess } from '../fixtures/weir-process.ts';

const SOON = { timeout: 60_000, interval: 250 };

/** A replica that a busy machine delays is not lost. */
const AS_USUAL = { WEIR_TEST_PACE: '1' };

let upstream: TestUpstream;
beforeAll(async () => {
  upstream = await startUpstream();
});
afterAll(() => upstream.close());

type Store = ReturnType<typeof uniqueRedisStore>;

async function start(store: Store, settings: Readonly<Record<string, unknown>> = {}): Promise<WeirProcess> {
  const weir = await startWeir({ upstreamUrl: upstream.url, store, settings }, AS_USUAL);
  onTestFinished(async () => {
    // One that is stopped ends only once it goes on.
    weir.process.kill('SIGCONT');
    await weir.close();
  });
  return weir;
}

async function startThree(store: Store): Promise<readonly [WeirProcess, WeirProcess, WeirProcess]> {
  const three = await Promise.all([start(store), start(store), start(store)]);
  await expect.poll(() => countsAt(three[0], 'replica.joined'), SOON).toEqual([3]);
  return three;
}

const put = (url: string, body: object) =>
  fetch(url, {
    method: 'PUT',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(body),
  });

async function listed({ adminUrl }: WeirProcess): Promise<readonly ShownChange[]> {
  const response = await fetch(`${adminUrl}/changes?since=1h`);
  return response.ok ? ((await response.json()) as ShownChange[]) : [];
}

const of = async (kind: string, weir: WeirProcess) =>
  (await listed(weir)).filter((change) => change.kind === kind);

const countsAt = async (weir: WeirProcess, ...kinds: readonly string[]) => {
  const changes = await listed(weir);
  return kinds.map((kind) => changes.filter((change) => change.kind === kind).length);
};

it('a replica that stops is lost once, is back once, and is lost again when it is killed', async () => {
  const store = uniqueRedisStore();
  const [first, second, third] = await startThree(store);
  third.process.kill('SIGSTOP');
  for (const weir of [first, second])
    await expect.poll(() => countsAt(weir, 'replica.lost', 'replica.back'), SOON).toEqual([1, 0]);
  expect(await of('replica.lost', first)).toMatchObject([
    { subject: hostname(), text: 'stopped publishing and did not leave' },
  ]);
  third.process.kill('SIGCONT');
  // The one that was stopped has lost none of the others.
  for (const weir of [first, second, third])
    await expect.poll(() => countsAt(weir, 'replica.lost', 'replica.back'), SOON).toEqual([1, 1]);
  third.process.kill('SIGKILL');
  await expect.poll(() => countsAt(second, 'replica.lost', 'replica.back'), SOON).toEqual([2, 1]);
  // A replica that starts later knows which one is lost. One that leaves in order is not.
  const fourth = await start(store);
  await second.close();
  await expect.poll(() => countsAt(fourth, 'replica.joined', 'replica.left'), SOON).toEqual([4, 1]);
  first.process.kill('SIGKILL');
  await expect.poll(() => countsAt(fourth, 'replica.lost', 'replica.left'), SOON).toEqual([3, 1]);
});

it('after a restart of all replicas the list shows who did what and when, each once', async () => {
  const store = uniqueRedisStore();
  const old = await startThree(store);
  const [{ adminUrl, settingsFile }] = old;
  await put(`${adminUrl}/blocks/accounts/acct_1`, { why: 'leak', by: 'alice' });
  await put(`${adminUrl}/limits/live/accounts/acct_2`, {
    'account-read': 17,
    for: '2h',
    why: 'launch',
    by: 'bob',
  });
  // A change of one replica's file, as a deploy makes it at all of them.
  const limits = { windowSeconds: 60, defaults: { ...LIMITS, 'account-read': 19 } };
  await writeFile(join(dirname(settingsFile), 'limits.yaml'), JSON.stringify(limits));
  const whatPeopleDid = async (weir: WeirProcess) =>
    (await listed(weir)).filter(({ kind }) => ['block.made', 'limits.changed'].includes(kind));
  await expect.poll(async () => (await whatPeopleDid(old[1])).length, SOON).toBe(3);
  const before = await whatPeopleDid(old[1]);
  expect(before.map(({ kind, subject, by, why }) => [kind, subject, by, why])).toEqual([
    ['limits.changed', null, null, null],
    ['limits.changed', 'acct_2', 'bob', 'launch'],
    ['block.made', 'acct_1', 'alice', 'leak'],
  ]);
  const young: WeirProcess[] = [];
  for (const one of old) {
    young.push(await start(store));
    await one.close();
  }
  for (const weir of young) {
    await expect.poll(() => countsAt(weir, 'replica.joined', 'replica.left'), SOON).toEqual([6, 3]);
    expect(await whatPeopleDid(weir)).toEqual(before);
    expect(weir.lines.filter((line) => line.includes('"block.made"'))).toEqual([]);
  }
});

it('a new version and a certificate that ends soon are changes', async () => {
  const store = uniqueRedisStore();
  const untilMs = Date.now() + 3_600_000;
  const joined = {
    atMs: Date.now() - 1_000,
    kind: 'replica.joined',
    subject: 'weir-9',
    text: 'version 0.0.1',
    by: null,
    why: null,
    replica: 'weir-9',
    instance: 'of an earlier version',
  };
  const client = new Redis(sharedRedisUrl());
  await client.zadd(`${store.keyPrefix}:1:changes:record`, untilMs, JSON.stringify(joined));
  client.disconnect();
  const settings = { listen: { tls: newCertificate() } };
  const replicas = await Promise.all([start(store, settings), start(store, settings)]);
  for (const weir of replicas) {
    await expect.poll(() => countsAt(weir, 'replica.joined'), SOON).toEqual([3]);
    const versions = await of('version.changed', weir);
    expect(versions.map(({ text }) => text)).toEqual([expect.stringMatching(/^0\.0\.1 -> \d+\.\d+\.\d+/)]);
    await expect
      .poll(() => of('certificate.ending', weir), SOON)
      .toMatchObject([
        { subject: 'listen', text: expect.stringMatching(/^the certificate of listen ends at 20/) },
      ]);
  }
});

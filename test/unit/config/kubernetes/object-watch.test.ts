import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { ApiServer } from '../../../../src/config/kubernetes/api-server.ts';
import { DEFAULT_TIMING, ObjectWatch } from '../../../../src/config/kubernetes/object-watch.ts';
import { startApiServer, type TestApiServer } from '../../../fixtures/kubernetes-api.ts';

const WITHIN = { timeout: 60_000, interval: 5 };
const TIMING = { ...DEFAULT_TIMING, backoff: { ...DEFAULT_TIMING.backoff, firstMs: 4, longestMs: 200 } };

let server: TestApiServer;
let delivered: (string | undefined)[];
let reasons: string[];
let confirmed: number;
const watches: { watch: ObjectWatch; ended: Promise<void> }[] = [];

beforeEach(async () => {
  server = await startApiServer({ 'configmaps/limits': { 'limits.yaml': 'one' } });
  delivered = [];
  reasons = [];
  confirmed = 0;
});
afterEach(async () => {
  for (const { watch, ended } of watches.splice(0)) {
    watch.close();
    await ended;
  }
  await server.close();
});

function watchLimits(timing: Partial<typeof TIMING> = {}): void {
  const listener = {
    delivered: (texts: ReadonlyMap<string, string>) => delivered.push(texts.get('limits.yaml')),
    confirmed: () => confirmed++,
    lost: (reason: string) => reasons.push(reason),
  };
  const object = { kind: 'ConfigMap', name: 'limits' } as const;
  const watch = new ObjectWatch(object, new ApiServer(server), listener, { ...TIMING, ...timing });
  watches.push({ watch, ended: watch.run() });
}

const gets = () => server.requests.filter(({ kind }) => kind === 'get');
const untilWatching = () => vi.waitFor(() => expect(server.watches()).toBe(1), WITHIN);
const untilDelivered = (text: string) => vi.waitFor(() => expect(delivered.at(-1)).toBe(text), WITHIN);

it('delivers the object as it is, then every change', async () => {
  watchLimits();
  await untilWatching();
  server.put('configmaps/limits', { 'limits.yaml': 'two' });
  server.put('configmaps/limits', { 'limits.yaml': 'three' });
  await untilDelivered('three');
  expect(delivered).toEqual(['one', 'two', 'three']);
  expect(reasons).toEqual([]);
});

it('watches only this object, from the cache, with bookmarks and a time limit', async () => {
  watchLimits();
  await untilWatching();
  expect(Object.fromEntries(server.requests.at(-1)?.query ?? [])).toEqual({
    watch: 'true',
    fieldSelector: 'metadata.name=limits',
    resourceVersion: '0',
    allowWatchBookmarks: 'true',
    timeoutSeconds: '300',
  });
});

it('watches an object whose last change is older than what the server remembers', async () => {
  server.forgetVersions();
  watchLimits();
  await untilWatching();
  server.bookmark();
  await vi.waitFor(() => expect(confirmed).toBe(2), WITHIN);
  server.put('configmaps/limits', { 'limits.yaml': 'two' });
  await untilDelivered('two');
  expect(delivered).toEqual(['one', 'two']);
  expect(reasons).toEqual([]);
});

it('watches from the next change on if the server refuses to begin with the object', async () => {
  server.refuseInitialEvents();
  watchLimits();
  await vi.waitFor(() => expect(confirmed).toBe(1), WITHIN);
  expect(Object.fromEntries(server.requests.findLast(({ kind }) => kind === 'watch')?.query ?? [])).toEqual({
    watch: 'true',
    fieldSelector: 'metadata.name=limits',
    resourceVersion: '0',
    resourceVersionMatch: 'NotOlderThan',
    sendInitialEvents: 'false',
    allowWatchBookmarks: 'true',
    timeoutSeconds: '300',
  });
  server.put('configmaps/limits', { 'limits.yaml': 'two' });
  await untilDelivered('two');
  expect(reasons).toEqual([]);
});

it('reads what has changed until a watch from the next change on began', async () => {
  server.refuseInitialEvents();
  watchLimits();
  await vi.waitFor(() => expect(gets()).toHaveLength(1), WITHIN);
  server.putUnseen('configmaps/limits', { 'limits.yaml': 'two' });
  await untilDelivered('two');
  expect(server.watches()).toBe(1);
});

it('says that the watch failed, and not that it works, while the server refuses both', async () => {
  server.refuse(403, 'watch');
  watchLimits();
  await vi.waitFor(() => expect(reasons.length).toBeGreaterThan(2), WITHIN);
  expect(new Set(reasons)).toEqual(new Set(['403: configmaps/limits is refused here']));
  expect([confirmed, server.watches()]).toEqual([0, 0]);
});

it('takes no version that is older than the one that it read, whatever the server begins with', async () => {
  watchLimits();
  await untilWatching();
  for (const [resourceVersion, text] of [
    ['1', 'zero'],
    ['2', 'one'],
    ['10', 'two'],
  ]) {
    const object = { metadata: { resourceVersion }, data: { 'limits.yaml': text } };
    server.sendLine(JSON.stringify({ type: 'ADDED', object }));
  }
  await untilDelivered('two');
  expect(delivered).toEqual(['one', 'two']);
});

it('takes objects of a megabyte, and characters that arrive in pieces', async () => {
  watchLimits();
  await untilWatching();
  const text = 'é€🙂'.repeat(120_000);
  server.put('configmaps/limits', { 'limits.yaml': text });
  await vi.waitFor(() => expect(delivered.at(-1) === text).toBe(true), WITHIN);
});

it('reads the object again when the watch has expired (410)', async () => {
  watchLimits();
  await untilWatching();
  server.putUnseen('configmaps/limits', { 'limits.yaml': 'two' });
  server.expire();
  await untilDelivered('two');
  expect(reasons).toEqual(['410: too old resource version']);
});

it('reads the object again when the connection is cut', async () => {
  watchLimits();
  await untilWatching();
  server.putUnseen('configmaps/limits', { 'limits.yaml': 'two' });
  server.cut();
  await untilDelivered('two');
});

it('reads the object again when the server was gone and is back', async () => {
  watchLimits();
  await untilWatching();
  await server.stop();
  server.putUnseen('configmaps/limits', { 'limits.yaml': 'two' });
  await vi.waitFor(() => expect(reasons.length).toBeGreaterThan(2), WITHIN);
  await server.listen();
  await untilDelivered('two');
});

it('closes an idle connection, and reads the object again', async () => {
  watchLimits({ idleMs: 200 });
  await untilWatching();
  server.putUnseen('configmaps/limits', { 'limits.yaml': 'two' });
  await untilDelivered('two');
  expect(reasons.at(0)).toBe('no answer for 0.2 s');
});

it('keeps a connection while bookmarks arrive, and treats each as a confirmation', async () => {
  watchLimits({ idleMs: 1_000 });
  await untilWatching();
  const before = gets().length;
  for (let sent = 1; sent <= 30; sent++) {
    server.bookmark();
    await vi.waitFor(() => expect(confirmed).toBeGreaterThan(sent), { ...WITHIN, interval: 60 });
  }
  expect(gets()).toHaveLength(before);
  expect(delivered).toEqual(['one']);
});

it('keeps the content of a deleted object, and delivers the object when it is created again', async () => {
  watchLimits();
  await untilWatching();
  server.delete('configmaps/limits');
  server.put('configmaps/limits', { 'limits.yaml': 'two' });
  await untilDelivered('two');
  expect(delivered).toEqual(['one', 'two']);
});

it("reports the server's message when it refuses, and recovers afterwards", async () => {
  server.refuse(403);
  watchLimits();
  await vi.waitFor(() => expect(reasons.length).toBeGreaterThan(1), WITHIN);
  expect(reasons[0]).toBe('403: configmaps/limits is refused here');
  server.refuse(undefined);
  await untilDelivered('one');
});

it('reads the token again for every connection', async () => {
  watchLimits();
  await untilWatching();
  server.setToken('second-token');
  server.cut();
  await vi.waitFor(() => expect(gets()).toHaveLength(2), WITHIN);
  expect(gets().map(({ authorization }) => authorization)).toEqual([
    'Bearer first-token',
    'Bearer second-token',
  ]);
});

it('waits longer after each failure, up to a bound', async () => {
  server.refuse(500);
  watchLimits({ backoff: { ...TIMING.backoff, firstMs: 20, longestMs: 160 } });
  await vi.waitFor(() => expect(gets().length).toBeGreaterThan(6), WITHIN);
  const gaps = gets().map(({ atMs }, index, all) => atMs - (all[index - 1]?.atMs ?? 0));
  // Each wait is at least half of its bound; a busy machine can only make it longer. A timer may be 1 ms early.
  const shortest = [10, 20, 40, 80, 80, 80];
  for (const [index, least] of shortest.entries()) expect(gaps[index + 1]).toBeGreaterThan(least - 2);
});

it('a watch that lasted is retried soon, however many failures came before it', async () => {
  const { longestMs } = TIMING.backoff;
  server.refuse(500);
  watchLimits();
  await vi.waitFor(() => expect(gets().length).toBeGreaterThan(8), WITHIN);
  server.refuse(undefined);
  // A busy machine can make one retry late. The waits after failures are never shorter than half of the bound.
  await vi.waitFor(
    async () => {
      await untilWatching();
      const sinceMs = performance.now();
      await vi.waitUntil(() => performance.now() - sinceMs > longestMs, WITHIN);
      const before = gets().length;
      const cutMs = performance.now();
      server.cut();
      await vi.waitFor(() => expect(gets().length).toBeGreaterThan(before), WITHIN);
      expect((gets()[before]?.atMs ?? 0) - cutMs).toBeLessThan(longestMs / 2);
    },
    { timeout: 60_000 },
  );
});

it.each([
  '',
  'null',
  '7',
  '[]',
  '{}',
  'not JSON',
  '{"type":"MODIFIED"}',
  '{"type":"MODIFIED","object":{"data":7}}',
])('a strange event (%s) does not end it', async (line) => {
  watchLimits();
  await untilWatching();
  server.sendLine(line);
  server.putUnseen('configmaps/limits', { 'limits.yaml': 'two' });
  server.cut();
  await untilDelivered('two');
  await untilWatching();
  server.put('configmaps/limits', { 'limits.yaml': 'three' });
  await untilDelivered('three');
});

it('leaves no connection behind when it is closed', async () => {
  watchLimits();
  await untilWatching();
  const [{ watch, ended } = { watch: undefined, ended: undefined }] = watches.splice(0);
  watch?.close();
  await ended;
  await vi.waitFor(() => expect(server.watches()).toBe(0), WITHIN);
  expect(reasons).toEqual([]);
});

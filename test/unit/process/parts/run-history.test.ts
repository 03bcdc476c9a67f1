import { expect, it, onTestFinished, vi } from 'vitest';
import type { RecordedChange } from '../../../../src/admin/history/change.ts';
import { KEPT_MS } from '../../../../src/admin/history/change-history.ts';
import { version } from '../../../../src/config/package.ts';
import type { Reported } from '../../../../src/process/parts/reported.ts';
import { runHistory } from '../../../../src/process/parts/run-history.ts';
import type { MessageRecord, RecordedMessage } from '../../../../src/store/shared-store.ts';

const OLDER: RecordedChange = {
  atMs: Date.now() - 60_000,
  kind: 'replica.joined',
  subject: 'older',
  text: 'version 0.0.1, limits aaaaaaaa, operations bbbbbbbb',
  by: null,
  why: null,
  replica: 'older',
  instance: 'older',
};

/** A replica of an earlier version that has run for a month: its other entries have expired. */
const RUNNING: RecordedChange = { ...OLDER, kind: 'replica.running', atMs: Date.now() - 30 * 86_400_000 };

/** The history of a new replica. Its record is in `recorded`, and can be read when `isReadable` says so. */
function historyOn(
  recorded: RecordedChange[],
  isReadable: () => boolean,
  limitsVersion = () => 'cccccccccccc',
) {
  let reads = 0;
  const ends: number[] = [];
  const record = {
    async read() {
      reads += 1;
      if (!isReadable()) throw new Error('Redis is away');
      return recorded.map((one) => JSON.stringify(one));
    },
    async publish(messages: readonly RecordedMessage[]) {
      recorded.push(...messages.map(({ text }) => JSON.parse(text) as RecordedChange));
      ends.push(...messages.map(({ untilMs }) => untilMs));
      return { received: 1, notPublished: undefined };
    },
  } as unknown as MessageRecord;
  const board = {
    post: async () => {},
    read: async () => ({ texts: new Map(), leftOut: 0 }),
    async close() {},
  };
  const store = {
    withRecord: async <T>(_: string, use: (of: MessageRecord) => Promise<T>) => use(record),
    openBoard: () => board,
  };
  const history = runHistory({
    sharing: { store },
    clock: { nowMs: () => Date.now() },
    changes: {},
    metrics: {
      limitsVersion,
      operationsVersion: () => 'bbbbbbbbbbbb',
      requestTotals: () => ({ degraded: 0 }),
      requestsRejected: () => 0,
    },
    tls: { ends: new Map() },
  } as unknown as Reported);
  onTestFinished(() => history.close());
  return { history, ends, reads: () => reads };
}

const kindsOf = (recorded: readonly RecordedChange[]) => recorded.map(({ kind }) => kind).sort();

it('a deploy while Redis is away is listed when it is back, at the time of the deploy', async () => {
  const recorded = [OLDER];
  let isAway = true;
  const { history, reads } = historyOn(recorded, () => !isAway);
  history.joined();
  const joinedMs = Date.now();
  await expect.poll(() => kindsOf(recorded)).toEqual(['replica.joined', 'replica.joined']);
  await expect.poll(reads).toBeGreaterThan(2);
  // A replica of this version that joined later.
  recorded.push({
    ...OLDER,
    atMs: Date.now() + 1,
    text: `version ${version}, limits cccccccc, operations bbbbbbbb`,
    instance: 'later',
  });
  isAway = false;
  await expect.poll(() => kindsOf(recorded)).toContain('version.changed');
  await expect.poll(() => kindsOf(recorded)).toContain('limits.changed');
  expect(recorded).toEqual(
    expect.arrayContaining([
      expect.objectContaining({ kind: 'version.changed', text: `0.0.1 -> ${version}` }),
      expect.objectContaining({ kind: 'limits.changed', text: 'limits aaaaaaaa -> cccccccc, by a restart' }),
    ]),
  );
  const changed = recorded.filter(({ kind }) => kind === 'version.changed');
  expect(changed).toHaveLength(1);
  expect(changed[0]?.atMs).toBeLessThanOrEqual(joinedMs);
});

it('a deploy is listed, and a lost replica, although all had run for longer than changes are kept', async () => {
  const recorded = [RUNNING];
  historyOn(recorded, () => true).history.joined();
  await expect
    .poll(() => kindsOf(recorded))
    .toEqual(['limits.changed', 'replica.joined', 'replica.lost', 'replica.running', 'version.changed']);
  expect(recorded).toContainEqual(expect.objectContaining({ kind: 'replica.lost', instance: 'older' }));
});

it('a deploy is listed once, also if a replica of the earlier version writes in the middle of it that it runs', async () => {
  const versions = `version ${version}, limits cccccccc, operations bbbbbbbb`;
  const first = { ...OLDER, text: versions, instance: 'first of the new ones' };
  const recorded = [OLDER, first, { ...RUNNING, atMs: first.atMs + 1_000 }];
  const { history, reads } = historyOn(recorded, () => true);
  history.joined();
  await expect.poll(() => kindsOf(recorded).filter((kind) => kind === 'replica.joined')).toHaveLength(3);
  await expect.poll(reads).toBeGreaterThan(0);
  await history.close();
  expect(kindsOf(recorded)).not.toContain('version.changed');
  expect(kindsOf(recorded)).not.toContain('limits.changed');
});

it('a replica that runs renews its entry, which says since when it has its versions and is not listed', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  onTestFinished(() => void vi.useRealTimers());
  const recorded: RecordedChange[] = [];
  let limits = 'cccccccccccc';
  const { history, ends } = historyOn(
    recorded,
    () => true,
    () => limits,
  );
  const running = () => recorded.filter(({ kind }) => kind === 'replica.running');
  const afterAnHour = async (count: number) => {
    vi.advanceTimersByTime(3_600_000);
    await expect.poll(() => running().length).toBe(count);
  };
  const beforeMs = Date.now();
  history.joined();
  const joinedMs = Date.now();
  await expect.poll(() => kindsOf(recorded)).toEqual(['replica.joined']);
  await afterAnHour(1);
  await afterAnHour(2);
  const [first, again] = running();
  expect(again).toEqual(first);
  expect(first).toMatchObject({ text: `version ${version}, limits cccccccc, operations bbbbbbbb` });
  expect(first?.atMs).toBeGreaterThanOrEqual(beforeMs);
  expect(first?.atMs).toBeLessThanOrEqual(joinedMs);
  expect(ends.at(-1)).toBeGreaterThan((first?.atMs ?? 0) + KEPT_MS);
  limits = 'dddddddddddd';
  const changedMs = Date.now();
  await afterAnHour(3);
  expect(running().at(-1)?.text).toContain('limits dddddddd');
  expect(running().at(-1)?.atMs).toBeGreaterThanOrEqual(changedMs);
  expect((await history.history.read()).changes.map(({ kind }) => kind)).toEqual(['replica.joined']);
});

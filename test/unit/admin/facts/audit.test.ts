import { pino } from 'pino';
import { expect, it } from 'vitest';
import { liveLimitEvents } from '../../../../src/admin/facts/fact-events.ts';
import { LiveLimitApi } from '../../../../src/admin/facts/live-limit-api.ts';
import { parseLimits } from '../../../../src/config/files/limits/parse-limits.ts';
import { FollowedFacts } from '../../../../src/facts/followed-facts.ts';
import { SharedClock } from '../../../../src/facts/shared-clock.ts';
import { Changes } from '../../../../src/observe/log/noticed-changes.ts';
import { Buckets } from '../../../../src/stages/buckets/buckets.ts';
import { type MessageRecord, type SharedStore, UnknownOutcome } from '../../../../src/store/shared-store.ts';

/** A store that has one record. */
function sharingOf(record: MessageRecord): SharedStore {
  const unused = () => {
    throw new Error('not used by live limits');
  };
  return {
    subscribe: () => ({ subscribed: Promise.resolve(), close() {} }),
    withRecord: (_topic, use) => use(record),
    openBoard: unused,
    openPresence: unused,
    openClaims: unused,
    openOutbox: unused,
    openAgreement: unused,
    openArchive: unused,
  };
}

const OWNER = { section: 'accounts', id: 'acct_1' } as const;

it('each action writes one line with who, what and why, and what became of it', async () => {
  const lines: Record<string, unknown>[] = [];
  const log = pino({}, { write: (line) => lines.push(JSON.parse(line) as Record<string, unknown>) });
  const buckets = new Buckets('weir', parseLimits('{}', 'limits.yaml'));
  let failure: Error | undefined;
  const record: MessageRecord = {
    time: async () => ({ nowMs: Date.now(), sentMs: 0, answeredMs: 0 }),
    nowMs: async () => Date.now(),
    read: async () => [],
    messages: async () => [],
    publish: async () => {
      if (failure !== undefined) throw failure;
      return { received: 1, notPublished: undefined };
    },
    isLasting: async () => true,
    isForgetful: async () => false,
  };
  const changes = new Changes(log, Date.now);
  const sharing = {
    store: sharingOf(record),
    clock: new SharedClock(),
    observer: { sharedIgnored() {} },
    log,
  };
  const facts = new FollowedFacts(buckets.live, sharing, liveLimitEvents(buckets, changes));
  const actions = new LiveLimitApi({
    buckets,
    facts,
    blocks: { list: async () => [], isRead: true, ageSeconds: 0 },
    log: changes,
    owners: { refuseUnknown: async () => {} },
    filedLimit: async () => 500,
    findCosts: () => [],
  });
  const limits = [{ bucket: 'account-read', limit: 900 }] as const;

  await actions.set(OWNER, { limits, forMs: 60_000, isForced: false, why: 'launch', by: 'alice' });
  await actions.unset(OWNER, [], { why: 'over', by: 'bob' });
  failure = new Error('ECONNREFUSED');
  await expect(
    actions.set(OWNER, { limits, forMs: 60_000, isForced: false, why: 'again', by: 'eve' }),
  ).rejects.toThrow('Nothing was changed: Redis does not take the command (ECONNREFUSED).');
  failure = new UnknownOutcome('Connection is closed.');
  await expect(
    actions.set(OWNER, { limits, forMs: 60_000, isForced: false, why: 'late', by: 'eve' }),
  ).rejects.toThrow(
    'Redis gave no answer, so it may or may not have been changed: look at the list (Connection is closed.).',
  );
  expect(actions.limits()).toEqual([]);

  facts.close();
  const limit = { scope: 'account', id: 'acct_1', bucket: 'account-read', limit: 900 };
  expect(lines.filter(({ audit }) => audit)).toMatchObject([
    { audit: true, action: 'limit set', by: 'alice', why: 'launch', limits: [limit] },
    { audit: true, action: 'limit unset', by: 'bob', why: 'over', limits: [limit], outcome: 'changed' },
    {
      audit: true,
      action: 'limit set',
      by: 'eve',
      outcome: 'unchanged',
      problem: 'ECONNREFUSED',
      limits: [limit],
    },
    { audit: true, action: 'limit set', why: 'late', outcome: 'unknown', limits: [limit] },
  ]);
});

it('a replica that does not know the plan of an owner reports the limits that the others report', () => {
  const buckets = new Buckets('weir', parseLimits('{}', 'limits.yaml'));
  const changes = new Changes(pino({ enabled: false }), Date.now);
  const { apply } = liveLimitEvents(buckets, changes);
  const atMs = Date.now();
  const live = { bucket: 'account-read', id: 'acct_1', limit: 5_000, why: 'launch', by: 'alice' };
  const until = atMs + 60_000;
  apply({ ...live, atMs, untilMs: until, filed: 2_000 });
  expect(changes.latest[0]?.text).toMatch(/^account-read of acct_1 2000 -> 5000 until /);
  apply({ ...live, atMs: atMs + 1, untilMs: until, filed: 2_000, isRemoved: true });
  expect(changes.latest[0]?.text).toMatch(/^account-read of acct_1 5000 until .* UTC -> 2000: launch/);
});

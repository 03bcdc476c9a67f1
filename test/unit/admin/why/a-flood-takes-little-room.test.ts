import { expect, it, onTestFinished } from 'vitest';
import { ENTRY_BYTES, hourOf, IdIndex, writeEntry } from '../../../../src/admin/why/id-index.ts';
import { openMemoryArchive } from '../../../../src/admin/why/memory-archive.ts';
import { RefusalLog } from '../../../../src/admin/why/refusal-log.ts';
import { shownRefusal } from '../../../../src/admin/why/shown-refusal.ts';
import { Why, type WhySources } from '../../../../src/admin/why/why-refused.ts';
import { parseLimits } from '../../../../src/config/files/limits/parse-limits.ts';
import type { LimitRow } from '../../../../src/domain/limits/rows.ts';
import { Refusal } from '../../../../src/domain/problems.ts';
import { UsageBatch } from '../../../../src/observe/usage/batch.ts';
import type { RequestContext } from '../../../../src/stages/request-context.ts';
import type { Archive } from '../../../../src/store/shared-store.ts';
import { LIST, requestOf } from '../../../fixtures/request-context.ts';

const NOW_MS = 1_795_638_490_658;

const refusal = new Refusal('RateLimitExceeded', 'full');

function refused(account: string, requestId: string, principal = `of ${account}`): RequestContext {
  const bucket = { bucket: 'account-read', limit: 500, windowSeconds: 5 };
  const request = requestOf(account, 'org_1');
  const caller = request.caller && {
    ...request.caller,
    principal: { ...request.caller.principal, id: principal },
  };
  return Object.assign(request, {
    requestId,
    caller,
    refusal,
    operation: { ...LIST, id: 'listCustomerPayments' },
    charged: {
      outcome: 'denied',
      policy: '',
      rateLimit: '',
      owner: account,
      remaining: 0,
      retryAfterUs: 9,
      refusal,
      ...bucket,
    },
    due: {
      buckets: [
        {
          name: 'account-read',
          scope: 'account',
          owner: account,
          limit: 500,
          windowSeconds: 5,
          counts: 'points',
          source: 'plan',
          plan: 'enterprise',
          untilMs: Number.POSITIVE_INFINITY,
        },
      ],
    },
  });
}

function open(): { readonly why: Why; readonly archive: Archive; written(): number } {
  const memory = openMemoryArchive(() => NOW_MS);
  let bytes = 0;
  const archive: Archive = {
    ...memory,
    append(name, added, lifeMs) {
      bytes += added.length;
      return memory.append(name, added, lifeMs);
    },
  };
  return { why: openOn(archive), archive, written: () => bytes };
}

function openOn(archive: Archive, more: Partial<WhySources> = {}): Why {
  const limits = {};
  const why = new Why(
    'replica-1',
    {
      charges: new UsageBatch().charges,
      nowMs: () => NOW_MS,
      rows: () => [],
      limits: () => limits,
      writtenAt: async () => '/etc/weir/limits.yaml:112',
      ignored: { add() {} },
      unfindable() {},
      ...more,
    },
    archive,
    undefined,
  );
  onTestFinished(() => why.close());
  return why;
}

it('a refusal by an override until the last day that a file can name is found', async () => {
  const { accounts } = parseLimits(
    'accounts: { acct_1: { account-read: 500, until: "9999-12-31" } }',
    'limits.yaml',
  );
  const { untilMs } = accounts.get('acct_1')?.limits['account-read'] ?? {};
  const { why } = open();
  const request = refused('acct_1', 'request-1');
  const [bucket] = request.due?.buckets ?? [];
  why.requestFinished(
    Object.assign(request, { due: { buckets: [{ ...bucket, source: 'override', untilMs }] } }),
  );
  expect(await why.find('request-1')).toMatchObject([{ refusal: { owner: 'acct_1', untilMs } }]);
});

it('owners whose months begin on different days have explanations with the months of their own', async () => {
  const { why } = open();
  const days = ['2026-11-01', '2026-11-05'];
  for (const day of days) {
    const request = refused(`acct_${day}`, day);
    const [bucket] = request.due?.buckets ?? [];
    const span = { startMs: Date.parse(day), endMs: 0, nextEndMs: 0 };
    const month = { ...bucket, period: { unit: 'month', timeZone: 'UTC', startsOn: 1 }, span };
    why.requestFinished(Object.assign(request, { due: { buckets: [month] } }));
  }
  for (const day of days) {
    const [found] = (await why.find(day)) ?? [];
    expect(found && shownRefusal(day, found)).toMatchObject({
      text: expect.stringContaining(`acct_${day} had used 500 of 500 points per month (account-read)`),
      limit: { period: { unit: 'month', start: `${day}T00:00:00.000Z` } },
      filledText: expect.stringMatching(RegExp(`^Admitted from ${day} 00:00:00 to 2026-11-2`)),
    });
  }
});

it('requests are served while the lines of a flood are made', async () => {
  const { why } = open();
  let [inTurn, most] = [0, 0];
  const countLine = () => {
    inTurn += 1;
    most = Math.max(most, inTurn);
    return 9;
  };
  for (let index = 0; index < 5_000; index++) {
    const request = refused(`acct_${index}`, `request-${index}`);
    Object.defineProperty(request.charged, 'retryAfterUs', { get: countLine });
    why.requestFinished(request);
  }
  const nextTurn = () => {
    inTurn = 0;
    turn = setImmediate(nextTurn);
  };
  let turn = setImmediate(nextTurn);
  expect(await why.find('request-4999')).toHaveLength(1);
  clearImmediate(turn);
  expect(most).toBeGreaterThan(0);
  expect(most).toBeLessThanOrEqual(1_000);
});

it('requests are found after the clock of Redis was set back by an hour and a half', async () => {
  let nowMs = NOW_MS;
  const why = openOn(
    openMemoryArchive(() => nowMs),
    { nowMs: () => nowMs },
  );
  why.requestFinished(refused('acct_1', 'before'));
  expect(await why.find('before')).toHaveLength(1);
  nowMs -= 5_400_000;
  why.requestFinished(refused('acct_1', 'after'));
  why.requestFinished(refused('acct_1', 'after-by-another', 'svc_2'));
  for (const id of ['after', 'after-by-another'])
    expect(await why.find(id)).toMatchObject([{ atMs: nowMs, refusal: { atMs: nowMs } }]);
});

it('refusals of one caller take 16 bytes each, and refusals of different callers less than 300', async () => {
  const one = open();
  for (let index = 0; index < 10_000; index++) one.why.requestFinished(refused('acct_1', `request-${index}`));
  expect(await one.why.find('request-9999')).toHaveLength(1);
  expect(one.written() / 10_000).toBeLessThan(17);

  const many = open();
  for (let index = 0; index < 900; index++)
    many.why.requestFinished(refused(`acct_of_a_customer_${index}`, `request-${index}`));
  expect(await many.why.find('request-899')).toMatchObject([
    { refusal: { owner: 'acct_of_a_customer_899' } },
  ]);
  expect(many.written() / 900).toBeLessThan(300);
});

it('ten thousand callers of one Account share an explanation, and each request is found with its own caller', async () => {
  const { why, written } = open();
  for (let index = 0; index < 10_000; index++)
    why.requestFinished(refused('acct_1', `request-${index}`, `svc_${index}`));
  for (const index of [0, 1, 511, 512, 9_999]) {
    expect(await why.find(`request-${index}`)).toMatchObject([
      {
        caller: { principal: `svc_${index}`, account: 'acct_1', address: null },
        refusal: { principal: 'svc_0', owner: 'acct_1', limit: 500 },
      },
    ]);
  }
  expect(written() / 10_000).toBeLessThan(75);
});

const RANGE = '2001:db8:1::/48';

/** A request of one of the networks in a blocked range, for one of the operations. */
function blockedFrom(address: string, requestId: string, id: string): RequestContext {
  return Object.assign(refused(address, requestId), {
    operation: { ...LIST, id },
    caller: undefined,
    publicClient: { address, hashTag: address },
    due: undefined,
    charged: {
      outcome: 'denied',
      policy: '',
      rateLimit: '',
      owner: RANGE,
      remaining: 0,
      retryAfterUs: 9,
      refusal,
      bucket: 'blocked',
      limit: 0,
      windowSeconds: 0,
    },
  });
}

it('all networks of a blocked range share an explanation for each operation, and each is found with its own address', async () => {
  const log = new RefusalLog(() => NOW_MS);
  const { why } = open();
  for (let index = 0; index < 1_000; index++) {
    for (const operation of ['list', 'create']) {
      const address = `2001:db8:1:${index.toString(16)}::/64`;
      const request = blockedFrom(address, `${operation} ${index}`, operation);
      log.requestFinished(request);
      why.requestFinished(request);
    }
  }
  expect(log.take().refusals).toHaveLength(2);
  expect(await why.find('create 999')).toMatchObject([
    {
      caller: { principal: null, account: null, address: '2001:db8:1:3e7::/64' },
      refusal: { operation: 'create', bucket: 'blocked', owner: RANGE, address: '2001:db8:1:0::/64' },
    },
  ]);
});

const OPERATIONS = Array.from({ length: 40 }, (_, index) => ({ ...LIST, id: `operation ${index}` }));
const refusedFor = (operation: object, account: string) =>
  Object.assign(refused(account, 'r'), { operation });

it('a flood over many operations has the oldest reasons forgotten, and none that still refuses', () => {
  const log = new RefusalLog(() => NOW_MS);
  // Refusals are shared until the hour ends.
  log.written(127 * 1_048_576);
  log.take();
  const explained: string[] = [];
  const take = () => {
    for (const { owner } of log.take().refusals) if (!owner.startsWith('other')) explained.push(owner);
  };
  log.requestFinished(refusedFor(LIST, 'once'));
  // More than are remembered, and as many earlier ones.
  for (let index = 0; index < 110_000; index++) {
    if (index % 10_000 === 0) {
      take();
      log.requestFinished(refusedFor(LIST, 'always'));
    }
    log.requestFinished(refusedFor(OPERATIONS[index % 40] ?? LIST, `other ${index}`));
  }
  log.requestFinished(refusedFor(LIST, 'once'));
  take();
  expect(explained).toEqual(['once', 'always', 'once']);
});

it('a flood of further callers has no reason forgotten that still refuses', () => {
  const log = new RefusalLog(() => NOW_MS);
  log.written(127 * 1_048_576);
  log.take();
  let explained = 0;
  for (let index = 0; index < 200_000; index++) {
    if (index % 10_000 === 0) {
      explained += log.take().refusals.length;
      log.requestFinished(refused('acct_of_few', 'r'));
    }
    log.requestFinished(refused(`acct_${index % 8}`, 'r', `svc_${index % 100_000}`));
  }
  explained += log.take().refusals.length;
  expect(explained).toBe(9);
});

it('in a flood of a thousand Accounts with a window of 5 s each, explanations are shared for a minute, and say so', async () => {
  let nowMs = NOW_MS;
  const why = openOn(
    openMemoryArchive(() => nowMs),
    { nowMs: () => nowMs },
  );
  const log = new RefusalLog(() => nowMs);
  const taken: number[] = [];
  for (let second = 0; second < 60; second += 6) {
    for (let index = 0; index < 1_000; index++) {
      const request = refused(`acct_${index}`, `request-${index} at ${second}`);
      why.requestFinished(request);
      log.requestFinished(request);
    }
    taken.push(log.take().refusals.length);
    await why.find('nobody');
    nowMs += 6_000;
  }
  // The first 500 were not yet a flood.
  expect(taken).toEqual([1_000, 500, 0, 0, 0, 0, 0, 0, 0, 0]);
  const shownOf = async (id: string) => (await why.find(id))?.map((one) => shownRefusal(id, one));
  expect(await shownOf('request-999 at 54')).toMatchObject([
    {
      at: new Date(NOW_MS + 54_000).toISOString(),
      asOf: new Date(NOW_MS).toISOString(),
      limit: { owner: 'acct_999' },
      sharedText: expect.stringMatching(
        /^In a flood, requests share an explanation: this is the one of the first, at /,
      ),
    },
  ]);
  expect(await shownOf('request-0 at 0')).toMatchObject([{ limit: { owner: 'acct_0' }, sharedText: null }]);
});

it('requests that cannot be found are counted once they are recorded', async () => {
  let unfindable = 0;
  const memory = openMemoryArchive(() => NOW_MS);
  const why = openOn(memory, {
    unfindable(count) {
      unfindable += count;
    },
  });
  for (let index = 0; index < 50_007; index++) why.requestFinished(refused('acct_1', 'r', `svc_${index}`));
  await why.find('nobody');
  expect(unfindable).toBe(7);
  expect(await why.unfindable()).toBe(7);
});

it('every request of a flood that waits too long for Redis is found or counted', async () => {
  const memory = openMemoryArchive(() => NOW_MS);
  let isAway = true;
  const why = openOn({
    ...memory,
    append: async (...all) => (isAway ? Promise.reject(new Error('away')) : memory.append(...all)),
  });
  const ids = Array.from({ length: 52_000 }, (_, index) => `request-${index}`);
  for (const [index, id] of ids.entries()) {
    why.requestFinished(refused(`acct_${index}`, id));
    if (index % 25_000 === 0) await why.find('nobody');
  }
  isAway = false;
  await why.find('nobody');
  const counted = (await why.unfindable()) ?? 0;
  let found = 0;
  for (const id of ids.filter((_, index) => index % 500 === 0)) found += (await why.find(id))?.length ?? 0;
  expect(found * 500 + counted).toBe(52_000);
  expect(counted).toBe(2_000);
});

it('a flood of callers with an override each takes few looks into the files', async () => {
  let looks = 0;
  const why = openOn(
    openMemoryArchive(() => NOW_MS),
    {
      async writtenAt({ owner }) {
        looks += 1;
        return owner === 'acct_1' ? Promise.reject(new Error('unreadable')) : `limits.yaml:${looks}`;
      },
    },
  );
  for (let index = 0; index < 1_000; index++) {
    const request = refused(`acct_${index}`, `request-${index}`);
    for (const bucket of request.due?.buckets ?? []) Object.assign(bucket, { source: 'override' });
    why.requestFinished(request);
  }
  for (const [index, writtenAt] of [
    [0, 'limits.yaml:1'],
    [1, undefined],
    [19, 'limits.yaml:20'],
    [999, undefined],
  ] as const)
    expect((await why.find(`request-${index}`))?.[0]?.refusal).toMatchObject({
      owner: `acct_${index}`,
      source: 'override',
      ...(writtenAt !== undefined && { writtenAt }),
    });
  expect((await why.find('request-999'))?.[0]?.refusal).not.toHaveProperty('writtenAt');
  expect(looks).toBe(20);
});

it('every request of a flood of ten thousand callers is found, also those that waited while Redis was away', async () => {
  const memory = openMemoryArchive(() => NOW_MS);
  let isAway = true;
  const away = async () => Promise.reject(new Error('away'));
  const archive: Archive = { ...memory, append: (...all) => (isAway ? away() : memory.append(...all)) };
  const why = openOn(archive);
  const ids = Array.from({ length: 30_000 }, (_, index) => `request-${index}`);
  for (const [index, id] of ids.entries()) {
    why.requestFinished(refused(`acct_${index % 10_000}`, id));
    if (index % 9_000 === 0) await why.find('nobody');
  }
  isAway = false;
  for (const [index, id] of ids.entries()) {
    if (index % 61 !== 0) continue;
    expect(await why.find(id), id).toMatchObject([{ refusal: { owner: `acct_${index % 10_000}` } }]);
  }
  expect(await why.unfindable()).toBe(0);
});

it('after a flood of 128 MB within an hour requests are only counted, and the next hour may write half of the rest', () => {
  let nowMs = NOW_MS;
  const log = new RefusalLog(() => nowMs);
  const isTaken = () => {
    log.requestFinished(refused('acct_1', 'r'));
    return log.take().ids.length === 1;
  };
  const megabyte = 1_048_576;
  log.written(128 * megabyte - 1);
  expect(isTaken()).toBe(true);
  log.written(1);
  expect(isTaken()).toBe(false);
  nowMs += 3_600_000;
  log.written(64 * megabyte - 1);
  expect(isTaken()).toBe(true);
  log.written(1);
  expect(isTaken()).toBe(false);
  nowMs += 24 * 3_600_000;
  expect(isTaken()).toBe(true);
});

it('ids are found on pages that follow a full one', async () => {
  const index = new IdIndex(openMemoryArchive(() => NOW_MS));
  for (let round = 0; round < 20; round++) {
    const entries = Buffer.alloc(10_000 * ENTRY_BYTES);
    for (let number = 0; number < 10_000; number++) {
      const id = { processTag: 7, number, atMs: NOW_MS + round };
      writeEntry(entries, number * ENTRY_BYTES, `${round} ${number}`, id);
    }
    expect(await index.add(hourOf(NOW_MS), entries)).toHaveLength(0);
  }
  for (const [round, number] of [
    [0, 0],
    [19, 9_999],
    [12, 77],
  ] as const) {
    const found = await index.find(`${round} ${number}`, NOW_MS + 1_000);
    expect(found).toEqual([{ processTag: 7, number, atMs: NOW_MS + round }]);
  }
  expect(await index.find('0 0', NOW_MS + 25 * 3_600_000)).toEqual([]);
});

it('a principal that acts for two organizations has an explanation for each', async () => {
  const { why } = open();
  const ids = ['org_1', 'org_2', 'org_1', 'org_3', 'org_2'].map((organization, index) => {
    const request = refused('svc_1', `request-${index}`, 'svc_1');
    const caller = request.caller && {
      ...request.caller,
      account: `acct of ${organization}`,
      hashTag: organization,
    };
    why.requestFinished(Object.assign(request, { caller }));
    return `request-${index}`;
  });
  const accounts = await Promise.all(ids.map(async (id) => (await why.find(id))?.[0]?.refusal.account));
  expect(accounts).toEqual(['org_1', 'org_2', 'org_1', 'org_3', 'org_2'].map((one) => `acct of ${one}`));
});

it('a refusal is found, with what had filled the bucket, whatever operations are called', async () => {
  const operation = { ...LIST, id: 'list\u0007\u202ethings' };
  const batch = new UsageBatch();
  const { charges } = batch;
  const admitted = Object.assign(requestOf('acct_1', 'org_1'), {
    operation: { ...LIST, id: 'read\u0007\u202ethings' },
    chargeAskedMs: performance.now(),
    cost: 1,
  });
  batch.requestFinished(admitted, performance.now());
  const row = { name: 'account-read', scope: 'account', counts: 'points', selection: {} };
  const why = openOn(
    openMemoryArchive(() => NOW_MS),
    { charges, rows: () => [row as unknown as LimitRow] },
  );
  why.requestFinished(Object.assign(refused('acct_1', 'r'), { operation }));
  expect(await why.find('r')).toMatchObject([
    {
      refusal: { operation: 'list\\u0007\\u202ethings' },
      fills: [['replica-1', expect.anything(), [['read\\u0007\\u202ethings', 'svc', 1, 1]]]],
    },
  ]);
});

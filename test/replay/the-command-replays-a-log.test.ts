import { statSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { expect, it } from 'vitest';
import { parseLimits } from '../../src/config/files/limits/parse-limits.ts';
import { fileSource } from '../../src/replay/input/log-file.ts';
import { weirLog } from '../../src/replay/input/weir-log.ts';
import type { Retries } from '../../src/replay/replay.ts';
import { operationFinder, readCosts } from '../../src/replay/replay-costs.ts';
import { type ReplayResult, runReplay } from '../../src/replay/run-replay.ts';
import { type LoggedRequest, logText, START_MS, writeFiles } from './log-lines.ts';
import { runReplayCommand } from './replay-command.ts';

const LIMIT_5 = 'windowSeconds: 1\ndefaults: { account-read: 5, organization-read: 8 }\n';

/** Eight requests of one millisecond distance, ten seconds apart. */
const BURSTS: readonly LoggedRequest[] = [0, 10_000, 20_000].flatMap((startMs) =>
  Array.from({ length: 8 }, (_, index) => ({ atMs: startMs + index, organization: 'org_1' })),
);

interface Replayed {
  readonly retries?: Retries;
  readonly operations?: string;
  readonly usagePath?: string;
}

/** Replays files in this process, by LIMIT_5. */
async function replayed(
  files: readonly string[],
  { retries = 'none', operations, usagePath }: Replayed = {},
): Promise<ReplayResult> {
  const prices = await readCosts(operations, {}, '');
  const finder =
    prices &&
    operationFinder(
      prices,
      usagePath === undefined ? {} : { usage: { path: usagePath, requestsPerMinute: 60 } },
    );
  const { result } = await runReplay({
    sources: files.map((file) => fileSource(file, statSync(file).size)),
    readLine: weirLog(finder),
    hasLoggedCosts: true,
    finder,
    limits: parseLimits(LIMIT_5, 'limits.yaml'),
    retries,
    hasSeries: false,
    onProgress: () => {},
    signal: new AbortController().signal,
  });
  return result;
}

it('--json names every bucket with its limit, requests, refusals and windows', async () => {
  const { log, limits } = await writeFiles({ log: logText(BURSTS), limits: LIMIT_5 });
  const { code, stdout, stderr } = await runReplayCommand(log, '--limits', limits, '--json');
  expect(code, stderr).toBe(0);
  const result = JSON.parse(stdout) as ReplayResult;
  expect(result).toMatchObject({
    from: new Date(START_MS).toISOString(),
    to: new Date(START_MS + 20_007).toISOString(),
    lines: 24,
    unreadable: 0,
    requests: 24,
    refused: { before: 0, after: 9 },
    complete: true,
  });
  expect(result.buckets).toEqual([
    expect.objectContaining({
      scope: 'account',
      id: 'acct_1',
      bucket: 'account-read',
      limit: 5,
      requests: 24,
      refusedBefore: 0,
      refusedAfter: 9,
      fullestWindow: 8,
      windows: { p50: 8, p99: 8, 'p99.9': 8 },
      worstHour: { from: new Date(START_MS).toISOString(), requests: 24, points: 24, refused: 9 },
    }),
    expect.objectContaining({
      scope: 'organization',
      id: 'org_1',
      bucket: 'organization-read',
      limit: 8,
      refusedAfter: 0,
      refusedByOther: { before: 0, after: 9 },
    }),
  ]);
});

it('several files, plain or gzip, are one log, in the order of the charges', async () => {
  // The lines of a burst are written at the same moment, and the latest charges come first.
  const shuffled = [0, 8, 16].flatMap((start) =>
    BURSTS.slice(start, start + 8)
      .map((one) => ({ ...one, lasts: 5_000 - (one.atMs % 10_000) }))
      .toReversed(),
  );
  const even = BURSTS.filter((_, index) => index % 2 === 0);
  const odd = BURSTS.filter((_, index) => index % 2 === 1);
  const files = await writeFiles({
    whole: logText(BURSTS),
    'access.log': logText(odd),
    'access.log.1.gz': gzipSync(logText(even)),
    shuffled: logText(shuffled),
  });
  const whole = await replayed([files.whole]);
  const parts = await replayed([files['access.log'], files['access.log.1.gz']]);
  const reordered = await replayed([files.shuffled]);
  expect(parts.buckets).toEqual(whole.buckets);
  expect(reordered.buckets).toEqual(whole.buckets);
});

it('rotated files that do not overlap are read in the order of their times, whatever their order on the command line', async () => {
  const hour = (hours: number) => BURSTS.map((one) => ({ ...one, atMs: one.atMs + hours * 3_600_000 }));
  const files = await writeFiles({
    'access.log': logText(hour(2)),
    'access.log.1': logText(hour(1)),
    'access.log.2': logText(hour(0)),
  });
  const result = await replayed([files['access.log'], files['access.log.1'], files['access.log.2']]);
  expect(result).toMatchObject({ requests: 72, refused: { after: 27 }, notes: [] });
});

it('invalid lines are counted and listed; other log lines are not requests', async () => {
  const text = `{"level":30,"msg":"weir is listening"}\n${logText(BURSTS)}not json\n\n{"msg":"request","outcome":"admitted"}\n`;
  const { log, limits } = await writeFiles({ log: text, limits: LIMIT_5 });
  const result = await replayed([log]);
  expect(result).toMatchObject({ lines: 27, otherLines: 1, unreadable: 2, requests: 24 });
  expect(result.unreadableLines.map(({ line }) => line)).toEqual([26, 28]);
  const { stdout } = await runReplayCommand(log, '--limits', limits);
  expect(stdout).toContain(`${log}:26 is not a JSON object`);
});

it('a log is no success if nothing or little of it could be read', async () => {
  const { most, none, empty, limits } = await writeFiles({
    most: `${logText(BURSTS)}${'not json\n'.repeat(25)}`,
    none: '{"level":30,"msg":"weir is listening"}\n',
    empty: '',
    limits: LIMIT_5,
  });
  const failure = async (log: string, ...args: readonly string[]) => {
    const { code, stderr } = await runReplayCommand(log, '--limits', limits, ...args);
    return [code, stderr.trim()];
  };
  const unread = '25 of 49 lines of the log could not be read: is --format right?';
  expect(await failure(most, '--json')).toEqual([1, unread]);
  expect(await failure(most, '--suggest', '1%')).toEqual([1, unread]);
  for (const log of [none, empty])
    expect(await failure(log)).toEqual([1, 'The log has no request that could be replayed.']);
});

it('--max-refused sets the exit status', async () => {
  const { log, limits } = await writeFiles({ log: logText(BURSTS), limits: LIMIT_5 });
  const run = (share: string) => runReplayCommand(log, '--limits', limits, '--max-refused', share);
  expect((await run('37.5%')).code).toBe(0);
  expect((await run('0.38')).code).toBe(0);
  const above = await run('37.4%');
  expect(above.code).toBe(2);
  expect(above.stderr).toContain('37.5 % of the requests are refused');
  expect((await run('half')).code).toBe(1);
});

it('--max-refused does not judge a log whose end is missing', async () => {
  const whole = gzipSync(logText(BURSTS));
  const { cut, limits } = await writeFiles({ cut: whole.subarray(0, -8), limits: LIMIT_5 });
  const judged = await runReplayCommand(cut, '--limits', limits, '--max-refused', '99%');
  expect(judged.stderr).toContain(
    `--max-refused needs the whole log, and ${cut} could not be read to the end.`,
  );
  expect(judged.code).toBe(1);
  const shown = await runReplayCommand(cut, '--limits', limits, '--json');
  expect(shown.code).toBe(0);
  expect(JSON.parse(shown.stdout)).toMatchObject({ brokenFiles: [{ file: cut }] });
});

it('with the price that an operation has in another document, it spends that', async () => {
  const document = {
    openapi: '3.1.0',
    info: { title: 'test', version: '1' },
    paths: { '/v3/things': { get: { 'x-weir': { cost: 5 }, responses: { 200: { description: 'ok' } } } } },
  };
  const { log, operations } = await writeFiles({
    log: logText(BURSTS),
    operations: JSON.stringify(document),
  });
  const result = await replayed([log], { operations });
  expect(result.refused.after).toBe(21);
  expect(result.buckets[0]).toMatchObject({ points: 120, fullestWindow: 40 });
});

it('a settled request spends what it has cost in the end, and a refunded one nothing', async () => {
  const lines = [
    { cost: 5, settled: 3 },
    { cost: 4_000, settled: 0 },
    { cost: 2, settled: 2 },
  ];
  const { log } = await writeFiles({ log: logText(lines.map((more, index) => ({ atMs: index, more }))) });
  const result = await replayed([log]);
  expect(result.refused.after).toBe(0);
  expect(result.buckets[0]).toMatchObject({ points: 5, requests: 2, fullestWindow: 5 });
});

it('a request that was free spends what its operation costs in another document', async () => {
  const priced = (operation: object) => ({
    get: { 'x-weir': operation, responses: { 200: { description: 'ok' } } },
  });
  const document = {
    openapi: '3.1.0',
    info: { title: 'test', version: '1' },
    paths: { '/v3/things': priced({ cost: 3, public: true }), '/v3/reports': priced({ cost: 3 }) },
  };
  const free = { outcome: 'free', clientAddress: '203.0.113.9' };
  const text = logText([
    { atMs: 0, more: free },
    { atMs: 1, more: { ...free, path: '/v3/reports', account: undefined, principal: undefined } },
    { atMs: 2, more: { ...free, method: 'OPTIONS' } },
  ]);
  const { log, operations } = await writeFiles({ log: text, operations: JSON.stringify(document) });
  expect(await replayed([log])).toMatchObject({ requests: 0, uncharged: 3 });
  const result = await replayed([log], { operations });
  expect(result).toMatchObject({ requests: 1, uncharged: 1, withoutAccount: 1, unreadable: 0 });
  expect(result.buckets).toMatchObject([{ bucket: 'address-read', id: '203.0.113.9', points: 3 }]);
});

it('refusals of what has no cost are uncharged, and blocked requests with a cost are named as refused elsewhere', async () => {
  const blocked = { outcome: 'denied', status: 429, bucket: 'blocked', limit: 0, windowSeconds: 0 };
  const address = { account: undefined, principal: undefined, address: '203.0.113.9' };
  const without = { kind: undefined, cost: undefined, operation: undefined };
  const text = logText([
    { atMs: 0, more: { ...blocked, ...address, ...without } },
    { atMs: 1, more: { ...blocked, ...address, ...without, path: undefined } },
    { atMs: 2, more: { ...blocked, ...address, ...without, method: 'OPTIONS' } },
    { atMs: 3, more: { ...blocked, ...address, operation: 'listFree', cost: 0 } },
    { atMs: 4, more: { ...blocked, ...address, operation: 'usage', cost: 0, bucket: 'usage' } },
    { atMs: 5, more: { ...blocked, ...address } },
    { atMs: 6, more: { ...blocked, ...address, public: true } },
    { atMs: 7, more: blocked },
  ]);
  const operations = JSON.stringify({
    openapi: '3.1.0',
    info: { title: 'test', version: '1' },
    paths: { '/v3/things': { get: { responses: { 200: { description: 'ok' } } } } },
  });
  const files = await writeFiles({ log: text, operations });
  const result = await replayed([files.log]);
  expect(result).toMatchObject({ unreadable: 0, uncharged: 5, withoutAccount: 1, requests: 2 });
  expect(result.notes.join()).toContain('refusals by what is not replayed: blocked (2)');
  expect(await replayed([files.log], files)).toMatchObject({ unreadable: 0, uncharged: 5, requests: 1 });
});

it('a cost that no request can have is still a line that cannot be read', async () => {
  const denied = { outcome: 'denied', status: 429, bucket: 'account-read' };
  const { log } = await writeFiles({
    log: logText([{ atMs: 0, more: { ...denied, cost: -1 } }, { atMs: 1 }]),
  });
  expect(await replayed([log])).toMatchObject({ unreadable: 1, uncharged: 0, requests: 1 });
});

it('a request that cost more than it reserved needs room for its reservation, and adds the rest above the limit', async () => {
  const requests = [
    { atMs: 0, more: { cost: 2, settled: 50 } },
    { atMs: 500 },
    { atMs: 1_500, more: { cost: 2, settled: 4 } },
    { atMs: 1_501 },
    { atMs: 1_502 },
  ];
  const { log } = await writeFiles({ log: logText(requests) });
  const result = await replayed([log]);
  expect(result.refused.after).toBe(2);
  expect(result.buckets[0]).toMatchObject({ points: 57, fullestWindow: 51 });
  expect(result.notes.join()).not.toContain('does not load');
});

it('a request that cost less than it reserved needs room for its reservation, and returns the rest', async () => {
  const lines = [
    { cost: 5, settled: 1 },
    { cost: 5, settled: 1 },
    { cost: 4, settled: 1 },
    { cost: 3, settled: 3 },
    { cost: 1, settled: 1 },
  ];
  const { log } = await writeFiles({ log: logText(lines.map((more, index) => ({ atMs: index, more }))) });
  const result = await replayed([log]);
  // The second has room for 4 points, and the last one for none.
  expect(result.refused.after).toBe(2);
  expect(result.buckets[0]).toMatchObject({ points: 7, fullestWindow: 7 });
});

it('with a document that reads costs from responses, a cost of 0 is free', async () => {
  const extension = { cost: 5, settle: { header: 'x-cost' } };
  const document = {
    openapi: '3.1.0',
    info: { title: 'test', version: '1' },
    paths: { '/v3/things': { get: { 'x-weir': extension, responses: { 200: { description: 'ok' } } } } },
  };
  const lines = [
    { settled: 0, upstreamStatus: 200 },
    { settled: 0, status: 503, upstreamStatus: 503 },
    { settled: 1 },
  ];
  const { log, operations } = await writeFiles({
    log: logText(lines.map((more, index) => ({ atMs: index * 10_000, more }))),
    operations: JSON.stringify(document),
  });
  // The failure may have been refunded by the settings of that time, which this document does not have.
  expect((await replayed([log], { operations })).buckets[0]).toMatchObject({ points: 6, requests: 3 });
});

it('limits in requests count a response that cost 0 points, and none that was refunded', async () => {
  const extension = { cost: 5, settle: { bytes: 1024 } };
  const document = {
    openapi: '3.1.0',
    info: { title: 'test', version: '1' },
    paths: { '/v3/things': { get: { 'x-weir': extension, responses: { 200: { description: 'ok' } } } } },
  };
  const answers = [
    { settled: 0, status: 304, upstreamStatus: 304 },
    { settled: 0, status: 200, upstreamStatus: 200 },
    { settled: 0, status: 503 },
  ];
  const files = await writeFiles({
    log: logText(answers.map((more, index) => ({ atMs: index, more: { cost: 5, ...more } }))),
    operations: JSON.stringify(document),
    limits: 'limits: { calls: { per: account, requests: 1, window: 1s } }',
  });
  for (const flags of [[], ['--operations', files.operations]]) {
    const { stdout } = await runReplayCommand(files.log, '--limits', files.limits, '--json', ...flags);
    const { buckets, uncharged } = JSON.parse(stdout) as ReplayResult;
    expect(buckets).toMatchObject([
      { bucket: 'calls', requests: 2, points: 2, refusedAfter: 1 },
      { bucket: 'account-read', requests: 2, points: 0, refusedAfter: 0 },
    ]);
    expect(uncharged).toBe(1);
  }
});

it('with a document, what Weir has refunded because it sent nothing is free', async () => {
  const document = {
    openapi: '3.1.0',
    info: { title: 'test', version: '1' },
    paths: { '/v3/things': { get: { responses: { 200: { description: 'ok' } } } } },
  };
  const answers = [
    { settled: 0, status: 503, upstreamError: 'ECONNREFUSED' },
    { settled: 0, status: 408 },
    { settled: 0, status: 0 },
    // The settings of that time may have refunded these, and the document does not.
    { settled: 0, status: 422 },
    { settled: 0, status: 503, upstreamStatus: 503 },
    { status: 503, upstreamError: 'ECONNRESET' },
  ];
  const { log, operations } = await writeFiles({
    log: logText(answers.map((more, index) => ({ atMs: index, more }))),
    operations: JSON.stringify(document),
  });
  const result = await replayed([log], { operations });
  expect(result).toMatchObject({ requests: 3, uncharged: 3 });
});

it('a request for the own limits is charged as no operation of a document, although what it does not list is charged', async () => {
  const document = { openapi: '3.1.0', info: { title: 'test', version: '1' }, paths: {} };
  const own = { path: '/v3/limits', operation: 'usage', cost: 0, outcome: 'free' };
  const { log, operations } = await writeFiles({
    log: logText([{ atMs: 0, more: own }, { atMs: 1 }]),
    operations: JSON.stringify(document),
  });
  const result = await replayed([log], { operations, usagePath: '/v3/limits' });
  expect(result.buckets[0]).toMatchObject({ points: 1, requests: 1 });
});

it('with a document whose failures are free, a request that a limit had refused counts as refused', async () => {
  const document = {
    openapi: '3.1.0',
    info: { title: 'test', version: '1' },
    paths: {
      '/v3/things': {
        get: { 'x-weir': { cost: 1, refundOn: ['4xx'] }, responses: { 200: { description: 'ok' } } },
      },
    },
  };
  const denied = { outcome: 'denied', status: 429, bucket: 'account-read' };
  const { log, operations } = await writeFiles({
    log: logText([{ atMs: 0 }, { atMs: 1, more: denied }, { atMs: 2, more: { status: 404 } }]),
    operations: JSON.stringify(document),
  });
  const result = await replayed([log], { operations });
  expect(result.refused).toEqual({ before: 1, after: 0 });
  expect(result.buckets[0]).toMatchObject({ points: 2, requests: 2 });
});

it('a line that was settled at the most points of a request is replayed', async () => {
  const { log } = await writeFiles({
    log: logText([{ atMs: 0, more: { cost: 2, settled: 2_000_000_000 } }]),
  });
  expect((await replayed([log])).buckets[0]).toMatchObject({ points: 2_000_000_000, requests: 1 });
});

it('a decision that a program has held spends what the line of its end says', async () => {
  const lines = [
    { cost: 4_000, heldMs: 60_000 },
    { msg: 'settlement', cost: 4_000, settled: 3, outcome: 'settled' },
    { msg: 'settlement', cost: 2, settled: 2, outcome: 'ended' },
    { msg: 'settlement', cost: 4_000, settled: 0, outcome: 'settled' },
  ];
  const { log } = await writeFiles({ log: logText(lines.map((more, index) => ({ atMs: index, more }))) });
  const result = await replayed([log]);
  expect(result.buckets[0]).toMatchObject({ points: 5, requests: 2, fullestWindow: 5 });
});

it('with a document, the limits that name tags or paths count what held decisions have cost, as the log says', async () => {
  const answer = { responses: { 200: { description: 'ok' } } };
  const document = {
    openapi: '3.1.0',
    info: { title: 'test', version: '1' },
    paths: {
      '/v3/things': {
        get: { operationId: 'listThings', 'x-weir': { cost: 9 }, tags: ['models'], ...answer },
      },
    },
  };
  const program = { method: undefined, path: undefined, msg: 'settlement', outcome: 'settled' };
  const held = [3, 4].map((settled, index) => ({
    atMs: index,
    more: { ...program, cost: 4_000, settled },
  }));
  const files = await writeFiles({
    log: logText([...held, { atMs: 2, more: { ...program, cost: 1, settled: 2, operation: 'gone' } }]),
    operations: JSON.stringify(document),
    limits: `
limits:
  by-tag: { per: account, points: 100, window: 1m, tags: [models] }
  by-path: { per: account, points: 100, window: 1m, operations: ["GET /v3/**"] }
`,
  });
  const flags = [files.log, '--limits', files.limits, '--operations', files.operations, '--json'];
  const { code, stdout, stderr } = await runReplayCommand(...flags);
  expect(code, stderr).toBe(0);
  const { buckets } = JSON.parse(stdout) as ReplayResult;
  expect(Object.fromEntries(buckets.map(({ bucket, points }) => [bucket, points]))).toEqual({
    'account-read': 9,
    'by-tag': 7,
    'by-path': 7,
  });
});

it('with the settlement that an operation has in another document, what is logged is settled, and its refunds are free', async () => {
  const extension = { cost: 5, settle: { bytes: 1024 }, refundOn: ['5xx'] };
  const document = {
    openapi: '3.1.0',
    info: { title: 'test', version: '1' },
    paths: { '/v3/things': { get: { 'x-weir': extension, responses: { 200: { description: 'ok' } } } } },
  };
  const lines = [{ settled: 2 }, { status: 503 }, {}].map((more, index) => ({ atMs: index * 10_000, more }));
  const { log, operations } = await writeFiles({ log: logText(lines), operations: JSON.stringify(document) });
  const result = await replayed([log], { operations });
  expect(result.buckets[0]).toMatchObject({ points: 7, requests: 2, fullestWindow: 5 });
});

it('a request whose operation reserves by the body, and that was not settled, spends what it had reserved, and the most at the most', async () => {
  const extension = { cost: 5, reserve: { json: '/n', most: 30 }, settle: { json: '/used' } };
  const document = {
    openapi: '3.1.0',
    info: { title: 'test', version: '1' },
    paths: { '/v3/things': { get: { 'x-weir': extension, responses: { 200: { description: 'ok' } } } } },
  };
  const logged = [
    { cost: 20, unsettled: 'missing' },
    { cost: 90, unsettled: 'abandoned' },
    { cost: 20, settled: 2 },
  ];
  const lines = logged.map((more, index) => ({ atMs: index * 10_000, more }));
  const { log, operations } = await writeFiles({ log: logText(lines), operations: JSON.stringify(document) });
  const result = await replayed([log], { operations });
  expect(result.buckets[0]).toMatchObject({ points: 52, requests: 3, fullestWindow: 30 });
});

it('refused lines of the log can be left out, and refusals of the replay sent again', async () => {
  const refused = { outcome: 'denied', status: 429, bucket: 'account-read' };
  const requests = BURSTS.map((one, index) => (index % 8 >= 6 ? { ...one, more: refused } : one));
  const { log } = await writeFiles({ log: logText(requests) });
  const none = await replayed([log]);
  expect(none).toMatchObject({
    requests: 24,
    refused: { before: 6, after: 9 },
    changed: { refused: 3, admitted: 0 },
  });
  expect(none.notes.join()).toContain('Refused clients usually retry');
  const drop = await replayed([log], { retries: 'drop' });
  expect(drop).toMatchObject({ requests: 18, refused: { before: 6, after: 3 }, retries: { dropped: 6 } });
  const after = await replayed([log], { retries: 'after' });
  expect(after).toMatchObject({
    requests: 18,
    refused: { after: 3 },
    retries: { dropped: 6, added: 3, gaveUp: 0 },
  });
});

it('a wrong file, folder or option is one sentence', async () => {
  const { log, limits } = await writeFiles({ log: logText(BURSTS), limits: LIMIT_5 });
  const sentences: [string[], string][] = [
    [['/no/such/file', '--limits', limits], 'There is no file /no/such/file.'],
    [['/tmp', '--limits', limits], '/tmp is a folder'],
    [[log], 'Name the limits to replay with --limits'],
    [[log, '--limits', limits, '--rows', 'x'], '--rows takes a whole number'],
    [[log, '--limits', limits, '--report', '/no/such/report.html'], 'there is no folder /no/such.'],
    [[log, '--limits', limits, '--report', '/tmp'], '--report /tmp is a folder'],
    [[log, '--limits', limits, '--report', '/proc/report.html'], "open '/proc/report.html'"],
  ];
  for (const [args, sentence] of sentences) {
    const { code, stderr } = await runReplayCommand(...args);
    expect(code).toBe(1);
    expect(stderr).toContain(sentence);
    expect(stderr.trim().split('\n')).toHaveLength(1);
  }
});

import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { parseLimits } from '../../src/config/files/limits/parse-limits.ts';
import { assignedPlan, limitInForce } from '../../src/domain/limits/limits.ts';
import type { LogEntry } from '../../src/replay/input/entry.ts';
import { LineCounts } from '../../src/replay/input/line-counts.ts';
import { brokenFiles } from '../../src/replay/notes.ts';
import { Replay } from '../../src/replay/replay.ts';
import { Demand } from '../../src/replay/suggest/demand.ts';
import { suggestLimits } from '../../src/replay/suggest/search.ts';
import { generatedCases } from '../fixtures/generated-cases.ts';
import { type LoggedRequest, logText, START_MS, writeFiles } from './log-lines.ts';
import { runReplayCommand } from './replay-command.ts';

const MOST_REFUSED = 0.05;

const arbitraryRequest = fc.record({
  waitUs: fc.oneof(fc.integer({ min: 0, max: 2_000 }), fc.integer({ min: 0, max: 400_000 })),
  account: fc.constantFrom('acct_1', 'acct_2'),
  cost: fc.integer({ min: 1, max: 4 }),
});

const READ = { id: 'read', kind: 'read', access: 'caller', cost: 1, listed: true } as const;

function entryOf(atUs: number, account: string, cost: number): LogEntry {
  const who = { account, organization: undefined, principal: 'svc_1' };
  return {
    atUs,
    loggedUs: atUs,
    operation: READ,
    cost,
    ...who,
    wasRefused: false,
    refusedBy: undefined,
  };
}

/** What a replay of these entries refuses when each Account has this limit. */
function refusedWith(entries: readonly LogEntry[], limit: number): number {
  const limits = parseLimits(`defaults: { account-read: ${limit} }`, 'limits.yaml');
  const replay = new Replay(limits, 'none', false);
  for (const entry of entries) replay.take(entry);
  replay.end();
  return replay.refused.after;
}

it('a suggested limit refuses at most the share that is allowed, and one point less would refuse more', () => {
  const pattern = fc.array(arbitraryRequest, { minLength: 30, maxLength: 300 });
  fc.assert(
    fc.property(pattern, (requests) => {
      let nowUs = START_MS * 1000;
      const entries = requests.map(({ waitUs, account, cost }) => {
        nowUs += waitUs;
        return entryOf(nowUs, account, cost);
      });
      const demand = new Demand(parseLimits('{}', 'limits'), 'none');
      for (const entry of entries) demand.take(entry);
      demand.end();
      const options = {
        mostRefused: MOST_REFUSED,
        confidence: 0.95,
        leastLimit: () => 1,
        onPass: () => {},
        isGiven: () => true,
      };
      const { limits, refused } = suggestLimits(demand, options);
      demand.spool.close();
      let sum = 0;
      for (const one of limits) {
        const own = entries.filter(({ account }) => account === one.stats.id);
        const allowed = own.length * MOST_REFUSED;
        expect(refusedWith(own, one.limit)).toBe(one.refused);
        expect(one.refused).toBeLessThanOrEqual(allowed);
        const costliest = Math.max(...own.map(({ cost }) => cost));
        if (one.limit > costliest) expect(refusedWith(own, one.limit - 1)).toBeGreaterThan(allowed);
        sum += one.refused;
      }
      expect(refused).toBe(sum);
    }),
    { numRuns: generatedCases(40) },
  );
});

/** A burst of eight in each of ten minutes, of one Account whose name is a word of YAML. */
const BURSTS: readonly LoggedRequest[] = Array.from({ length: 10 }, (_, minute) =>
  Array.from({ length: 8 }, (_, index) => ({
    atMs: minute * 60_000 + index,
    account: 'no',
    organization: 'org_1',
  })),
).flat();

it('--suggest prints a limits file that can be used as it is, with a comment at every limit', async () => {
  const base = `windowSeconds: 1
defaults: { account-write: 70, person-read: { limit: 9, shadow: true } }
accounts: { no: { account-write: 77 }, acct_absent: { account-read: { limit: 900, until: "2030-01-31T18:00:00Z" } } }
`;
  const files = await writeFiles({ log: logText(BURSTS), 'base.yaml': base });
  const { code, stdout, stderr } = await runReplayCommand(
    files.log,
    '--suggest',
    '0%',
    '--limits',
    files['base.yaml'],
  );
  expect(code, stderr).toBe(0);
  const limitLines = stdout.split('\n').filter((line) => /^ +[a-z]+-(read|write): /.test(line));
  expect(limitLines.filter((line) => !line.includes(' # '))).toEqual([]);
  expect(stdout).toMatch(/account-write: 70 +# kept from .*base\.yaml\n/);
  expect(stdout).toMatch(/organization-write: 1000 +# Weir's default\n/);
  const suggested = parseLimits(stdout, 'suggested.yaml');
  const before = parseLimits(base, 'base.yaml');
  expect(suggested.accounts.get('no')).toEqual({
    limits: {
      'account-read': { limit: 8, shadow: false },
      'account-write': { limit: 77, shadow: false },
    },
  });
  expect(suggested.organizations.get('org_1')).toEqual({
    limits: { 'organization-read': { limit: 8, shadow: false } },
  });
  expect(suggested.accounts.get('acct_absent')).toEqual(before.accounts.get('acct_absent'));
  expect(suggested.defaults).toEqual(before.defaults);
  expect(stdout).toContain('# 80 requests, fullest window 8, p99.9 8: refuses 0 (0 %)');

  const replayed = await writeFiles({ log: logText(BURSTS), 'suggested.yaml': stdout });
  const { stdout: json } = await runReplayCommand(
    replayed.log,
    '--limits',
    replayed['suggested.yaml'],
    '--json',
  );
  expect(JSON.parse(json)).toMatchObject({ requests: 80, refused: { after: 0 } });
});

it('the share that a suggested file refuses counts the limits that it keeps', async () => {
  const requests = Array.from({ length: 40 }, (_, index) => ({ atMs: index, more: { principal: 'svc_1' } }));
  const base = 'limits: { key: { per: principal, requests: 10, window: 1h } }';
  const files = await writeFiles({ log: logText(requests), base });
  const flags = [files.log, '--suggest', '0%', '--limits', files.base];
  const { stdout } = await runReplayCommand(...flags);
  const suggested = await writeFiles({ suggested: stdout });
  const replayed = await runReplayCommand(files.log, '--limits', suggested.suggested, '--json');
  expect(JSON.parse(replayed.stdout)).toMatchObject({ requests: 40, refused: { after: 30 } });
  expect(stdout).toContain('the kept ones included, would have refused 30 of 40 requests (75 %).');
  // In JSON, the principal has a suggested limit as well.
  const { stdout: json } = await runReplayCommand(...flags, '--json');
  expect(JSON.parse(json)).toMatchObject({ requests: 40, refused: 0 });
});

it('a suggestion can be loaded and outlasts the plan of its owner, and what is kept ends as before', async () => {
  const base = `
limits:
  minute: { per: account, points: 10, window: 1m }
plans: { pro: { minute: 1000 } }
accounts:
  no: { plan: pro, until: "2030-01-31", account-write: 7 }
  acct_none: { minute: none, account-read: { limit: 9, until: "2031-01-31" }, until: "2030-01-31" }
  acct_last: { account-read: { limit: 9, shadow: true, until: "9999-12-31" } }
  acct_empty: {}
organizations:
  org_1: { organization-read: none, organization-write: none, until: "2030-01-31" }
  org_2: { organization-read: none, organization-write: { limit: 9, shadow: true }, until: "2030-01-31" }
`;
  const files = await writeFiles({ log: logText(BURSTS), base });
  const suggest = async (...flags: readonly string[]) => {
    const { code, stdout, stderr } = await runReplayCommand(
      files.log,
      ...['--suggest', '0%', '--limits', files.base, ...flags],
    );
    expect(code, stderr).toBe(0);
    return parseLimits(stdout, 'suggested.yaml');
  };
  const suggested = await suggest();
  const before = parseLimits(base, 'base.yaml');
  for (const id of ['acct_none', 'acct_last', 'acct_empty'])
    expect(suggested.accounts.get(id)).toEqual(before.accounts.get(id));
  expect(suggested.organizations.get('org_2')).toEqual(before.organizations.get('org_2'));
  const endMs = Date.UTC(2030, 1, 1);
  const atTheEnd = (owner: 'accounts' | 'organizations', id: string, bucket: string) => {
    const row = suggested.rows.find(({ name }) => name === bucket);
    if (row === undefined) throw new Error(`the suggestion has no ${bucket}`);
    const plan = assignedPlan(suggested, owner, id, endMs);
    return limitInForce(suggested, row, id, plan, endMs);
  };
  expect(atTheEnd('accounts', 'no', 'account-read')).toMatchObject({ limit: 8, limitSource: 'override' });
  expect(atTheEnd('accounts', 'no', 'minute')).toMatchObject({ limit: 8, limitSource: 'override' });
  expect(atTheEnd('organizations', 'org_1', 'organization-read')).toMatchObject({ limit: 8 });
  expect(suggested.accounts.get('no')).toMatchObject({
    plan: { name: 'pro', untilMs: endMs },
    limits: { 'account-write': { limit: 7, untilMs: endMs } },
  });
  expect(suggested.organizations.get('org_1')?.limits['organization-write']).toMatchObject({
    limit: 'none',
    untilMs: endMs,
  });
  // A plan of --plan does not end, and beside it `none` cannot either.
  const { plan, limits } = (await suggest('--plan', 'acct_none=pro')).accounts.get('acct_none') ?? {};
  expect(plan).toEqual({ name: 'pro' });
  expect(limits?.minute).toMatchObject({ limit: 1_000_000_000, untilMs: endMs });
});

it('where the base has a shadow limit alone, the suggestion is one, too, and refuses nothing', async () => {
  const base = `
limits:
  minute: { per: account, points: 5, window: 1m, shadow: true }
  hour: { per: account, points: 50, window: 1h }
  day: { per: account, points: 500, window: 1d }
plans: { trial: { hour: { limit: 9, shadow: true } } }
accounts: { no: { account-read: { limit: 3, shadow: true } } }
organizations: { org_1: { plan: trial } }
`;
  const files = await writeFiles({ log: logText(BURSTS), base });
  const flags = ['--suggest', '50%', '--confidence', '0%', '--limits', files.base];
  const { stdout } = await runReplayCommand(files.log, ...flags);
  const suggested = parseLimits(stdout, 'suggested.yaml');
  expect(suggested.accounts.get('no')?.limits).toEqual({
    'account-read': { limit: 4, shadow: false },
    minute: { limit: 4, shadow: true },
    hour: { limit: 40, shadow: false },
    day: { limit: 40, shadow: false },
  });
  expect(stdout).toMatch(/ minute: \{ limit: 4, shadow: true \} +# .*: would refuse 40 \(50 %\)$/m);
  expect(stdout).toMatch(/ day: 40 +# .*: refuses 40 \(50 %\)$/m);
  const { stdout: json } = await runReplayCommand(files.log, ...flags, '--json');
  const { limits } = JSON.parse(json) as { limits: readonly { bucket: string; shadow?: boolean }[] };
  expect(limits.filter(({ shadow }) => shadow).map(({ bucket }) => bucket)).toEqual(['minute']);
  // The limits of the Organization and of the day refuse.
  const replayed = await writeFiles({ log: logText(BURSTS), limits: stdout });
  const after = await runReplayCommand(replayed.log, '--limits', replayed.limits, '--json');
  const { refused } = JSON.parse(json) as { refused: number };
  expect(JSON.parse(after.stdout)).toMatchObject({ refused: { after: refused } });
});

it('only limits that a request of the log would change are marked as without one', async () => {
  const base = `
limits:
  lists: { per: principal, requests: 15, window: 1h }
  in-flight: { per: account, concurrent: 5 }
  minute: { per: account, points: 10, window: 1m, kind: write }
  jobs: { per: service, requests: 15, window: 1h }
accounts: { no: { in-flight: 3, minute: 30 } }
addresses: { 203.0.113.9: { address-read: 40 } }
principals: { svc_1: { lists: 50, jobs: 60 } }
`;
  const files = await writeFiles({ log: logText(BURSTS), base });
  const { stdout } = await runReplayCommand(files.log, '--suggest', '0%', '--limits', files.base);
  for (const kept of ['in-flight: 3', 'address-read: 40', 'lists: 50', 'jobs: 60'])
    expect(stdout).toMatch(new RegExp(`^    ${kept} +# kept from .*base$`, 'm'));
  expect(stdout).toMatch(/^ {4}minute: 30 +# no request in this log; kept from .*base$/m);
});

it('--suggest without limits lays its own over the defaults of Weir', async () => {
  const { log } = await writeFiles({ log: logText(BURSTS) });
  const { stdout } = await runReplayCommand(log, '--suggest', '15%');
  expect(stdout).toMatch(/person-read: 500 +# Weir's default; no request in this log/);
  expect(parseLimits(stdout, 'suggested.yaml').accounts.get('no')?.limits['account-read']?.limit).toBe(7);
});

it('no suggestion is below the cost of an operation, because the gateway would not load it', async () => {
  const document = {
    openapi: '3.1.0',
    info: { title: 'test', version: '1' },
    paths: {
      '/v3/things': { get: { responses: { 200: { description: 'ok' } } } },
      '/v3/big': { get: { 'x-weir': { cost: 10 }, responses: { 200: { description: 'ok' } } } },
    },
  };
  const { log, operations } = await writeFiles({
    log: logText(BURSTS),
    operations: JSON.stringify(document),
  });
  const { stdout } = await runReplayCommand(log, '--suggest', '0%', '--operations', operations);
  expect(parseLimits(stdout, 'suggested.yaml').accounts.get('no')?.limits['account-read']?.limit).toBe(10);
});

it('of a period, the suggestion is the most that was used in one, with the same days and time zone', async () => {
  const base = `limits:
  quota: { per: account, points: 1000, period: month, startsOn: 15, timeZone: Europe/Berlin }
accounts: { no: { quota: 500, periodStartsOn: 3 } }
`;
  const files = await writeFiles({ log: logText(BURSTS), 'base.yaml': base });
  const { code, stdout, stderr } = await runReplayCommand(
    files.log,
    '--suggest',
    '0%',
    '--limits',
    files['base.yaml'],
  );
  expect(code, stderr).toBe(0);
  expect(stdout).toMatch(/# The log has no whole period of quota: .*, so these limits may be too low\./);
  const suggested = parseLimits(stdout, 'suggested.yaml');
  expect(suggested.rows.find(({ name }) => name === 'quota')?.period).toMatchObject({
    unit: 'month',
    startsOn: 15,
    timeZone: 'Europe/Berlin',
  });
  expect(suggested.accounts.get('no')).toMatchObject({ periodStartsOn: 3, limits: { quota: { limit: 80 } } });
});

it('an Account that a limits file cannot name does not spoil the suggestion, and neither does a file that is cut off', async () => {
  const lines = ['acct_1', 'J\u00f6rg', 'two words'].map((account, second) =>
    JSON.stringify({ time: 1_790_000_000 + second, method: 'GET', account }),
  );
  const whole = gzipSync(`${lines.join('\n')}\n`);
  const base = 'limits: { hourly: { per: account, points: 99, window: 1h, durable: false } }';
  const files = await writeFiles({ log: `${lines.join('\n')}\n`, cut: whole.subarray(0, -8), base });
  const flags = ['--format', 'json', '--suggest', '0%', '--limits', files.base];
  const { code, stdout, stderr } = await runReplayCommand(files.log, files.cut, ...flags);
  expect(code, stderr).toBe(0);
  expect(stdout).toContain('# No limits for 2 owners that a limits file cannot name, such as "J');
  expect(stdout).toContain(`# ${files.cut} could not be read to its end (unexpected end of file).`);
  const suggested = parseLimits(stdout, 'suggested.yaml');
  expect([...suggested.accounts.keys()]).toEqual(['acct_1']);
  expect(suggested.rows.find(({ name }) => name === 'hourly')?.durable).toBe(false);
});

it('a log that cannot be read is named with the cause, and no line of its name is a line of the suggestion', async () => {
  const broken = Buffer.concat([gzipSync('').subarray(0, 2), Buffer.from('no gzip')]);
  const files = await writeFiles({ log: logText(BURSTS), 'broken\nlog': broken });
  const name = files['broken\nlog'].replace('\n', '\\u000a');
  const problem = `${name} could not be read to its end (unknown compression method).`;
  const { code, stdout, stderr } = await runReplayCommand(files['broken\nlog'], '--suggest', '0%');
  expect([code, stdout]).toEqual([1, '']);
  expect(stderr).toBe(`${problem}\nThe log has no request that could be replayed.\n`);
  const part = await runReplayCommand(files.log, files['broken\nlog'], '--suggest', '0%');
  expect(part.stdout.split('\n')).toContain(`# ${problem}`);
  // A message of the system has the path as it is.
  const lineCounts = new LineCounts();
  lineCounts.brokenFiles.push({ file: 'log', problem: "EACCES: permission denied, open 'a\nb'" });
  expect(brokenFiles(lineCounts)).toEqual([
    "log could not be read to its end (EACCES: permission denied, open 'a\\u000ab').",
  ]);
});

it.each([
  { cost: 3, settled: 400, limit: 3 },
  { cost: 400, settled: 3, limit: 400 },
])(
  'a suggestion needs room for what requests reserved ($cost), not for what they cost in the end ($settled)',
  async (settled) => {
    const { limit, ...more } = settled;
    const lines = Array.from({ length: 20 }, (_, index) => ({ atMs: index * 10_000, more }));
    const { log } = await writeFiles({ log: logText(lines) });
    const { stdout } = await runReplayCommand(log, '--suggest', '0%');
    const suggested = parseLimits(stdout, 'suggested.yaml').accounts.get('acct_1')?.limits['account-read'];
    expect(suggested?.limit).toBe(limit);
  },
);

it('no suggestion is above the highest valid limit, and it names the buckets that would need more', async () => {
  const requests = [
    ...Array.from({ length: 4 }, (_, index) => ({ atMs: index, more: { cost: 1_000_000_000 } })),
    // Nothing that a window of the next Account has is above that limit.
    ...Array.from({ length: 4 }, (_, index) => ({
      atMs: index,
      account: 'acct_2',
      more: { cost: 200_000_000 },
    })),
    // One request needs room for more than any limit has.
    { atMs: 9, account: 'acct_3', more: { cost: 2_000_000_000, settled: 1 } },
  ];
  const { log } = await writeFiles({ log: logText(requests) });
  const { stdout } = await runReplayCommand(log, '--suggest', '0%');
  const { accounts } = parseLimits(stdout, 'suggested.yaml');
  const limits = [...accounts.values()].map((one) => one.limits['account-read']?.limit);
  expect(limits).toEqual([1_000_000_000, 800_000_000, 1_000_000_000]);
  expect(stdout).toContain(
    '# No valid limit is high enough for 2 buckets, such as account-read of "acct_1": ',
  );
  expect(stdout).toMatch(/ account-read: 1000000000 +# 4 requests, .*: refuses 3 \(75 %\)$/m);
});

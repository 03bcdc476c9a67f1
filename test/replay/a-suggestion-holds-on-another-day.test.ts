import { describe, expect, it } from 'vitest';
import { parseLimits } from '../../src/config/files/limits/parse-limits.ts';
import { confidenceFrom, daysFor, daysToKeep } from '../../src/replay/suggest/days.ts';
import { Demand } from '../../src/replay/suggest/demand.ts';
import { suggestLimits } from '../../src/replay/suggest/search.ts';
import { random } from '../fixtures/random.ts';
import { type LoggedRequest, logText, START_MS, writeFiles } from './log-lines.ts';
import { runReplayCommand } from './replay-command.ts';

const DAY_MS = 86_400_000;

const READ = { id: 'read', kind: 'read', access: 'caller', cost: 1, listed: true } as const;

/** The requests of two bursts of very different sizes. */
function burstsOf(below: (most: number) => number): readonly number[] {
  return [0, 1].map(() => Math.min(100, Math.ceil(3 / (1 - below(1_000_000) / 1_000_000) ** 0.6)));
}

/** What a suggestion holds on varies less from Account to Account after more days. */
const accountsFor = (days: number) => (days < 19 ? 300 : 150);

/** Further days that are tried for each Account. */
const FURTHER_DAYS = 40;

/** The requests of so many days. */
function demandOf(days: number, below: (most: number) => number): Demand {
  const accounts = Array.from({ length: accountsFor(days) }, (_, index) => `acct_${index}`);
  const demand = new Demand(parseLimits('{}', 'limits'), 'none');
  const askAt = (account: string, atMs: number) => {
    const [atUs, what] = [(START_MS + atMs) * 1000, { operation: READ, cost: 1, organization: undefined }];
    const who = { account, principal: 'svc_1', wasRefused: false, refusedBy: undefined };
    demand.take({ atUs, loggedUs: atUs, ...what, ...who });
  };
  for (let day = 0; day < days; day++) {
    const sizes = accounts.map((account) => ({ account, bursts: burstsOf(below) }));
    for (const hour of [0, 1])
      for (const { account, bursts } of sizes)
        for (let count = 0; count < (bursts[hour] ?? 0); count++)
          askAt(account, day * DAY_MS + hour * 3_600_000);
  }
  // The last day is whole.
  askAt('acct_last', days * DAY_MS);
  demand.end();
  return demand;
}

function holds(limit: number, bursts: readonly number[]): boolean {
  const refused = bursts.reduce((sum, size) => sum + Math.max(0, size - limit), 0);
  return refused <= bursts.reduce((sum, size) => sum + size) * 0.01;
}

/** On which share of further days the limit that a log suggests for an Account refuses at most 1 %, beside the confidence that it states. */
function shareThatHolds(
  days: number,
  confidence: number,
): { readonly held: number; readonly stated: number } {
  const below = random(days);
  const demand = demandOf(days, below);
  const options = { mostRefused: 0.01, confidence, leastLimit: () => 1, onPass() {}, isGiven: () => true };
  const limits = suggestLimits(demand, options).limits.filter(({ stats }) => stats.id !== 'acct_last');
  demand.spool.close();
  expect(limits).toHaveLength(accountsFor(days));
  const held = limits.flatMap(({ limit }) =>
    Array.from({ length: FURTHER_DAYS }, () => holds(limit, burstsOf(below))),
  );
  return { held: held.filter(Boolean).length / held.length, stated: limits[0]?.confidence ?? 0 };
}

it.each([
  { days: 4, confidence: 0.95, stated: 4 / 5 },
  { days: 10, confidence: 0.9, stated: 10 / 11 },
  { days: 19, confidence: 0.95, stated: 0.95 },
  { days: 38, confidence: 0.95, stated: 38 / 39 },
  // One of the days may be left out, but not what it does to the log as a whole.
  { days: 39, confidence: 0.95, stated: 0.95, above: 0.03 },
])(
  'with bursts without a pattern, what $days days state for $confidence holds on as many further days',
  ({ days, confidence, stated, above = 0.02 }) => {
    const share = shareThatHolds(days, confidence);
    expect(share.stated).toBe(stated);
    expect(share.held).toBeGreaterThan(stated - 0.02);
    expect(share.held).toBeLessThan(stated + above);
  },
);

it.each([
  { days: 0, confidence: 0.95, kept: 0, stated: 0 },
  { days: 1, confidence: 0.95, kept: 1, stated: 0.5 },
  { days: 7, confidence: 0.95, kept: 7, stated: 0.875 },
  { days: 19, confidence: 0.95, kept: 19, stated: 0.95 },
  { days: 20, confidence: 0.95, kept: 20, stated: 20 / 21 },
  { days: 38, confidence: 0.95, kept: 38, stated: 38 / 39 },
  { days: 39, confidence: 0.95, kept: 38, stated: 0.95 },
  { days: 99, confidence: 0.95, kept: 95, stated: 0.95 },
])('$days days keep $kept for $confidence, and give $stated', ({ days, confidence, kept, stated }) => {
  expect(daysToKeep(days, confidence)).toBe(kept);
  expect(confidenceFrom(days, confidence)).toBe(stated);
});

it('95 % takes 19 days, and 99 % takes 99', () => {
  expect([0.5, 0.9, 0.95, 0.99].map(daysFor)).toEqual([1, 9, 19, 99]);
});

/** A burst each day at noon, of the day's number of requests, and single requests until the end of the last day. */
function dailyBursts(days: number, account = 'acct_1', firstDay = 0): readonly LoggedRequest[] {
  return Array.from({ length: days }, (_, day) => [
    ...Array.from({ length: 1 + ((day * 7) % days) }, (_, index) => ({
      atMs: (firstDay + day) * DAY_MS + index,
      account,
    })),
    { atMs: (firstDay + day + 1) * DAY_MS - 60_000, account },
  ]).flat();
}

/** The line of a bucket. */
function lineOf(yaml: string, bucket: string): string | undefined {
  return yaml.split('\n').find((line) => line.includes(`${bucket}: `) && line.includes('fullest'));
}

describe('the comment beside a limit has the confidence that its days allow', () => {
  it('95 % from 19 days on', async () => {
    const { log } = await writeFiles({ log: logText(dailyBursts(19)) });
    const { stdout } = await runReplayCommand(log, '--suggest', '1%');
    expect(lineOf(stdout, 'account-read')).toMatch(
      /: refuses 0 \(0 %\), on another day at most 1 % with 95 % confidence \(19 days\)$/,
    );
    expect(stdout).toContain(
      '# "Confidence" is how likely a limit is to refuse no larger share on another day',
    );
    expect(stdout).not.toContain('confidence takes');
  });

  it('less for a week', async () => {
    const { log } = await writeFiles({ log: logText(dailyBursts(7)) });
    const { stdout } = await runReplayCommand(log, '--suggest', '1%');
    expect(lineOf(stdout, 'account-read')).toContain('with 87.5 % confidence (7 days)');
    expect(stdout).toContain('95 % confidence takes 19 days with requests of the bucket.');
  });

  it('less for an Account that came late', async () => {
    const requests = [...dailyBursts(19), ...dailyBursts(3, 'acct_new', 16)];
    const { log } = await writeFiles({
      log: logText(requests.sort((one, other) => one.atMs - other.atMs)),
    });
    const { stdout } = await runReplayCommand(log, '--suggest', '1%', '--json');
    expect(JSON.parse(stdout)).toMatchObject({
      mostRefused: 0.01,
      confidence: 0.95,
      limits: [
        { id: 'acct_1', bucket: 'account-read', confidence: 0.95, spans: 19, spanDays: 1 },
        { id: 'acct_new', bucket: 'account-read', confidence: 0.75, spans: 3, spanDays: 1 },
      ],
    });
  });

  it('none for a log of less than a day', async () => {
    const hours = dailyBursts(1).filter(({ atMs }) => atMs < DAY_MS / 2);
    const { log } = await writeFiles({ log: logText(hours) });
    const { stdout } = await runReplayCommand(log, '--suggest', '1%');
    expect(lineOf(stdout, 'account-read')).toMatch(/: refuses 0 \(0 %\)$/);
    expect(stdout).toContain('and less than a day gives none.');
  });

  it('for as many days as a window has', async () => {
    const limits = 'limits: { weekly: { per: account, points: 1000, window: 7d } }';
    const files = await writeFiles({ log: logText(dailyBursts(21)), 'limits.yaml': limits });
    const args = ['--suggest', '1%', '--limits', files['limits.yaml']];
    const { stdout } = await runReplayCommand(files.log, ...args);
    expect(lineOf(stdout, 'weekly')).toContain(
      'in another 7 days at most 1 % with 75 % confidence (3 times 7 days)',
    );
  });
});

it('a suggestion keeps every one of 19 days, and with --confidence 0% only the log as a whole', async () => {
  // One day has half of its requests at once, which is less than 5 % of all requests.
  const quiet = Array.from({ length: 19 * 24 }, (_, hour) => ({ atMs: hour * 3_600_000 }));
  const burst = Array.from({ length: 20 }, (_, index) => ({ atMs: 5 * DAY_MS + index }));
  const { log } = await writeFiles({
    log: logText([...quiet, ...burst].sort((one, other) => one.atMs - other.atMs)),
  });
  const limitWith = async (...args: readonly string[]) => {
    const { stdout } = await runReplayCommand(log, '--suggest', '5%', ...args);
    return parseLimits(stdout, 'suggested.yaml').accounts.get('acct_1')?.limits['account-read']?.limit;
  };
  // 44 requests of that day allow two refusals of the 21 at its beginning, and 476 of the log allow 23.
  expect(await limitWith()).toBe(19);
  expect(await limitWith('--confidence', '0%')).toBe(1);
});

it.each([
  { args: ['--suggest', '1%', '--confidence', '100%'], message: /takes less than 100%, not 100%/ },
  { args: ['--suggest', '1%', '--confidence', 'high'], message: /--confidence takes a share such as/ },
  { args: ['--confidence', '95%'], message: /add --suggest/ },
])('$args is refused', async ({ args, message }) => {
  const { log } = await writeFiles({ log: logText(dailyBursts(1)) });
  const { code, stderr } = await runReplayCommand(log, ...args);
  expect(code).toBe(1);
  expect(stderr).toMatch(message);
});

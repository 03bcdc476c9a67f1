import { expect, it } from 'vitest';
import type { ReplayResult } from '../../src/replay/run-replay.ts';
import { type LoggedRequest, logText, writeFiles } from './log-lines.ts';
import { runReplayCommand } from './replay-command.ts';

async function replayed(
  requests: readonly LoggedRequest[],
  limits: string,
  ...flags: readonly string[]
): Promise<ReplayResult> {
  const files = await writeFiles({ log: logText(requests), limits });
  const run = await runReplayCommand(files.log, '--limits', files.limits, '--json', ...flags);
  expect([0, 2], run.stderr).toContain(run.code);
  return JSON.parse(run.stdout) as ReplayResult;
}

const bucketOf = ({ buckets }: ReplayResult, bucket: string, id: string) =>
  buckets.find((one) => one.bucket === bucket && one.id === id);

it("a limit per principal counts a Person's requests together, those for Person-only operations included", async () => {
  const requests = Array.from({ length: 10 }, (_, index) => ({
    atMs: index,
    more: { principal: 'person_1', ...(index % 2 === 0 && { personOnly: true }) },
  }));
  const limits = 'limits: { each: { per: principal, requests: 6, window: 10s } }';
  const result = await replayed(requests, limits);
  expect(bucketOf(result, 'each', 'person_1')).toMatchObject({ requests: 10, refusedAfter: 4 });
});

it('limits per ServiceAccount are left out, and a note says why', async () => {
  const limits = 'limits: { each: { per: service, requests: 1, window: 10s } }';
  const { notes, refused } = await replayed([{ atMs: 0 }, { atMs: 1 }], limits);
  expect(refused.after).toBe(0);
  expect(notes).toContain('Left out: each. A log does not show which principals are ServiceAccounts.');
  const files = await writeFiles({ log: logText([{ atMs: 0 }]), limits });
  const { stdout } = await runReplayCommand(files.log, '--limits', files.limits, '--suggest', '0%');
  expect(stdout).toContain('# Left out: each. A log does not show which principals are ServiceAccounts.');
  expect(stdout).toMatch(/each: \{ per: service, .* # kept from [^;\n]*\n/);
});

const DAY_MS = 86_400_000;

it("an owner's months begin on its own day, in the figures and in a suggestion", async () => {
  // From 20 November: a request on each day of a month that begins on the 10th, and one before it.
  const requests = Array.from({ length: 31 }, (_, day) => ({
    atMs: (day + 20) * DAY_MS,
    organization: 'org_1',
  }));
  const limits = `
limits: { monthly: { per: organization, points: 100, period: month } }
organizations: { org_1: { periodStartsOn: 10 } }
`;
  const result = await replayed([{ atMs: 0, organization: 'org_1' }, ...requests], limits);
  expect(bucketOf(result, 'monthly', 'org_1')).toMatchObject({
    period: { unit: 'month', startsOn: 10 },
    fullestWindow: 31,
    windows: { p50: 1 },
  });
  const files = await writeFiles({ log: logText(requests), limits });
  const { stdout } = await runReplayCommand(files.log, '--limits', files.limits, '--suggest', '0%');
  expect(stdout).toMatch(/monthly: 31 +# 31 requests/);
});

it('the months of a principal begin on one day, whatever Account it acts for', async () => {
  // From 20 November to 20 December.
  const requests = Array.from({ length: 31 }, (_, day) => ({
    atMs: day * DAY_MS,
    account: `acct_${1 + (day % 2)}`,
    organization: 'org_1',
    more: { principal: 'person_1' },
  }));
  const limits = `
limits: { own: { per: principal, points: 3, period: month } }
accounts: { acct_1: { periodStartsOn: 10 }, acct_2: { periodStartsOn: 25 } }
`;
  const result = await replayed(requests, limits);
  expect(bucketOf(result, 'own', 'person_1')).toMatchObject({
    period: { unit: 'month', startsOn: 10 },
    refusedAfter: 31 - 2 * 3,
  });
});

it('a refusal counts for the bucket that the log names, and is noted if it is not replayed', async () => {
  const denied = ['account-read', 'blocked', 'in-flight', 'in-flight'].map((bucket, index) => ({
    atMs: index,
    more: { outcome: 'denied', status: 429, bucket },
  }));
  const limits = 'limits: { in-flight: { per: account, concurrent: 1 } }';
  const result = await replayed(denied, limits);
  expect(result.refused.before).toBe(4);
  expect(bucketOf(result, 'account-read', 'acct_1')).toMatchObject({
    refusedBefore: 1,
    refusedByOther: { before: 3 },
  });
  expect(result.notes).toContain(
    'The log has refusals by what is not replayed: blocked (1), in-flight (2). Here they are requests like any other, and may be admitted.',
  );
});

it('what a program asked for costs what the program named, from the limits that it chose', async () => {
  const document = {
    openapi: '3.1.0',
    info: { title: 'test', version: '1' },
    paths: { '/v3/things': { get: { 'x-weir': { cost: 2 }, responses: { 200: { description: 'ok' } } } } },
  };
  const { operations } = await writeFiles({ operations: JSON.stringify(document) });
  const requests = [
    { atMs: 0, more: { decision: 'decide', cost: 1 } },
    { atMs: 1, more: { decision: 'decide', cost: 7, namedCost: true } },
    { atMs: 2, more: { decision: 'decide', cost: 50, namedCost: true, limits: ['minute'] } },
  ];
  const limits = 'limits: { minute: { per: account, points: 100, window: 1m } }';
  for (const flags of [[], ['--operations', operations]]) {
    const result = await replayed(requests, limits, ...flags);
    const own = flags.length === 0 ? 1 : 2;
    expect(bucketOf(result, 'account-read', 'acct_1')).toMatchObject({ requests: 2, points: own + 7 });
    expect(bucketOf(result, 'minute', 'acct_1')).toMatchObject({ requests: 3, points: own + 57 });
  }
});

it('an Account that is exempt from the limits of its Organization has its plan and its months', async () => {
  const exempt = Array.from({ length: 4 }, (_, index) => ({
    atMs: index,
    organization: 'org_1',
    more: { organizationLimit: false },
  }));
  const other = { atMs: 4, account: 'acct_2', organization: 'org_1' };
  const limits = `
limits: { monthly: { per: account, points: 2, period: month } }
plans: { pro: { monthly: 3 } }
organizations: { org_1: { plan: pro, periodStartsOn: 10 } }
`;
  const result = await replayed([...exempt, other], limits);
  expect(bucketOf(result, 'monthly', 'acct_1')).toMatchObject({
    limit: 3,
    period: { unit: 'month', startsOn: 10 },
    refusedAfter: 1,
  });
  expect(bucketOf(result, 'organization-read', 'org_1')).toMatchObject({ requests: 1 });
  // A change of the exemption applies from then on.
  const back = await replayed([...exempt, { atMs: 5, organization: 'org_1' }], limits);
  expect(bucketOf(back, 'organization-read', 'org_1')).toMatchObject({ requests: 1 });
});

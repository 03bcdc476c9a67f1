import { expect, it } from 'vitest';
import type { ReplayResult } from '../../src/replay/run-replay.ts';
import { type LoggedRequest, logText, START_MS, writeFiles } from './log-lines.ts';
import { runReplayCommand } from './replay-command.ts';

const LIMITS = `
limits:
  minute: { per: account, points: 10, window: 1m }
  lists: { per: principal, requests: 15, window: 1h, operations: [listThings] }
  in-flight: { per: account, concurrent: 1 }
plans: { pro: { minute: 1000 } }
`;

/** Twenty requests of each of two Accounts within ten seconds. */
const LOG: readonly LoggedRequest[] = Array.from({ length: 20 }, (_, index) => [
  { atMs: index * 500, account: 'acct_1', more: { principal: 'svc_1' } },
  { atMs: index * 500 + 1, account: 'acct_2', more: { principal: 'svc_2' } },
]).flat();

async function replayed(...flags: readonly string[]): Promise<ReplayResult> {
  const { log, limits } = await writeFiles({ log: logText(LOG), limits: LIMITS });
  const { code, stdout, stderr } = await runReplayCommand(log, '--limits', limits, '--json', ...flags);
  expect(code, stderr).toBe(0);
  return JSON.parse(stdout) as ReplayResult;
}

const refusedBy = ({ buckets }: ReplayResult) =>
  Object.fromEntries(
    buckets
      .filter(({ refusedAfter }) => refusedAfter > 0)
      .map((one) => [`${one.bucket} ${one.id}`, one.refusedAfter]),
  );

it('each further limit refuses in its own window', async () => {
  const result = await replayed();
  expect(refusedBy(result)).toEqual({ 'minute acct_1': 10, 'minute acct_2': 10 });
  expect(result.buckets.find(({ bucket }) => bucket === 'lists')).toMatchObject({
    scope: 'principal',
    counts: 'requests',
    windowSeconds: 3_600,
  });
  expect(result.notes.join()).toMatch(/shorter than the window of minute, lists/);
  expect(result.notes.join()).toContain(
    'Left out: in-flight. A log does not show what ran at the same time.',
  );
  expect(result.buckets.some(({ bucket }) => bucket === 'in-flight')).toBe(false);
});

it('--plan shows what a plan would have done for an Account', async () => {
  // With room for the minute, the hour of the principal is what refuses.
  expect(refusedBy(await replayed('--plan', 'acct_1=pro'))).toEqual({
    'lists svc_1': 5,
    'minute acct_2': 10,
  });
});

it('--plan with a name that the limits do not have is refused', async () => {
  const { log, limits } = await writeFiles({ log: logText(LOG), limits: LIMITS });
  const { code, stderr } = await runReplayCommand(log, '--limits', limits, '--plan', 'acct_1=prp');
  expect(code).toBe(1);
  expect(stderr).toContain('the limits have no plan prp: they have pro');
});

it('--plan of an Account that the log does not have ends with 2, and is named', async () => {
  const { log, limits } = await writeFiles({ log: logText(LOG), limits: LIMITS });
  const flags = ['--limits', limits, '--plan', 'acct_1=pro', '--plan', 'acct_nope=pro'];
  const { code, stderr } = await runReplayCommand(log, ...flags);
  expect(code).toBe(2);
  expect(stderr).toBe(
    'No request of the log is charged to Account acct_nope, which --plan acct_nope=pro names.\n',
  );
  const { stdout } = await runReplayCommand(log, ...flags, '--json');
  const { unmatched, notes } = JSON.parse(stdout) as ReplayResult;
  expect(unmatched).toEqual([{ account: 'acct_nope', plan: 'pro' }]);
  expect(notes.join()).not.toContain('overrides');
});

it('a plan that the log names and the limits do not assign is counted, with a note', async () => {
  const ofPerson = { atMs: 9_999, account: 'acct_2', more: { principal: 'person_1', personOnly: true } };
  const planned = [...LOG, ofPerson].map((one) => ({
    ...one,
    organization: 'org_1',
    more: { ...one.more, plan: 'pro' },
  }));
  const noteWith = async (assignments: string, ...flags: readonly string[]) => {
    const { log, limits } = await writeFiles({ log: logText(planned), limits: `${LIMITS}${assignments}` });
    const { stdout } = await runReplayCommand(log, '--limits', limits, '--json', ...flags);
    const result = JSON.parse(stdout) as ReplayResult;
    expect(refusedBy(result)).not.toHaveProperty('minute acct_1');
    return result.notes.find((note) => note.includes('assign no plan'));
  };
  expect(await noteWith('')).toMatch(/no plan to 2 Accounts whose plan the log names, such as acct_1, so/);
  expect(await noteWith('accounts: { acct_1: { plan: pro } }')).toMatch(/to 1 Account .* such as acct_2, so/);
  expect(await noteWith('', '--plan', 'acct_1=pro', '--plan', 'acct_2=pro')).toBeUndefined();
  expect(await noteWith('organizations: { org_1: { plan: pro } }')).toBeUndefined();
  // Assigned for the first five seconds alone.
  const until = new Date(START_MS + 5_000).toISOString();
  expect(await noteWith(`organizations: { org_1: { plan: pro, until: "${until}" } }`)).toContain(
    '2 Accounts',
  );
});

it('a plan that the log names and the limits do not have is no plan, without a note', async () => {
  const { log, limits } = await writeFiles({
    log: logText(LOG.map((one) => ({ ...one, more: { ...one.more, plan: 'tiny' } }))),
    limits: LIMITS,
  });
  const { stdout } = await runReplayCommand(log, '--limits', limits, '--json');
  expect((JSON.parse(stdout) as ReplayResult).notes.join()).not.toContain('assign no plan');
});

it('overrides of owners that the log does not have are a note of bounded length', async () => {
  const noteOf = async (others: readonly string[]) => {
    const accounts = ['acct_1', ...others].map((id) => `  ${id}: { minute: 30 }\n`).join('');
    const { log, limits } = await writeFiles({
      log: logText(LOG),
      limits: `${LIMITS}principals: { svc_1: { lists: 30 } }\naccounts:\n${accounts}`,
    });
    const { code, stdout } = await runReplayCommand(log, '--limits', limits);
    expect(code).toBe(0);
    return stdout.split('\n').find((line) => line.includes('overrides'));
  };
  expect(await noteOf([])).toBeUndefined();
  expect(await noteOf(['acct_zz'])).toBe(
    'Note: No request of the log is charged to the owners of these overrides: accounts.acct_zz.',
  );
  expect(await noteOf(Array.from({ length: 2_005 }, (_, index) => `acct_z${index}`))).toMatch(
    /: accounts\.acct_z0, .*, accounts\.acct_z4 and 2,000 more\.$/,
  );
});

it('--suggest keeps the further limits and plans, and suggests limits for them', async () => {
  const { log, limits } = await writeFiles({ log: logText(LOG), limits: LIMITS });
  const { stdout } = await runReplayCommand(log, '--limits', limits, '--suggest', '0%');
  expect(stdout).toContain('minute: { per: account, points: 10, window: 1m }');
  expect(stdout).toContain('pro: { minute: 1000 }');
  expect(stdout).toMatch(/minute: 20 +# 20 requests/);
  const again = await writeFiles({ log: logText(LOG), 'suggested.yaml': stdout });
  const { code, stderr } = await runReplayCommand(again.log, '--limits', again['suggested.yaml']);
  expect(code, stderr).toBe(0);
});

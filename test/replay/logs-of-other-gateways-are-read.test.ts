import { RE2JS } from 're2js';
import { expect, it } from 'vitest';
import type { LogEntry } from '../../src/replay/input/entry.ts';
import { lineReader } from '../../src/replay/input/formats.ts';
import { type Mapping, parseMapping } from '../../src/replay/input/text-formats.ts';
import { timeUs } from '../../src/replay/input/times.ts';
import type { ReplayResult } from '../../src/replay/run-replay.ts';
import { expectLinearTime } from '../fixtures/growth.ts';
import { writeFiles } from './log-lines.ts';
import { runReplayCommand } from './replay-command.ts';

const AT_US = Date.UTC(2026, 10, 20, 12) * 1000;

function read(options: Partial<Parameters<typeof lineReader>[0]>, line: string): unknown {
  const readLine = lineReader({
    format: 'json',
    mapping: {},
    accountPattern: undefined,
    finder: undefined,
    ...options,
  });
  if (typeof readLine === 'string') throw new Error(readLine);
  return readLine(line);
}

function mapped(text: string): Mapping {
  const mapping = parseMapping(text);
  if (typeof mapping === 'string') throw new Error(mapping);
  return mapping;
}

const ENTRY: LogEntry = {
  atUs: AT_US,
  loggedUs: AT_US,
  operation: { id: 'GET', kind: 'read', cost: 1, access: 'caller', listed: true },
  cost: 1,
  account: 'acct_1',
  organization: undefined,
  principal: 'acct_1',
  wasRefused: false,
  refusedBy: undefined,
};

it('JSON lines, by a mapping of nested fields', () => {
  const line = JSON.stringify({
    ts: '2026-11-20T12:00:00.250Z',
    took: 0.25,
    verb: 'POST',
    uri: '/v3/things?x=1',
    code: 429,
    jwt: { sub: 'acct_1', org: 'org_1', 'x.user': 'svc_7' },
  });
  const mapping = mapped(
    'time=.ts,durationSeconds=.took,method=.verb,path=.uri,status=.code,account=.jwt.sub,organization=.jwt.org,principal=.jwt."x.user"',
  );
  expect(read({ mapping }, line)).toEqual({
    ...ENTRY,
    loggedUs: AT_US + 250_000,
    operation: { ...ENTRY.operation, id: 'POST', kind: 'write' },
    organization: 'org_1',
    principal: 'svc_7',
    wasRefused: true,
  });
});

it('the combined format of nginx and Apache, the Account from the user or by a pattern', () => {
  const line =
    '203.0.113.9 - acct_1 [20/Nov/2026:13:00:00 +0100] "GET /v3/things HTTP/1.1" 200 512 "-" "curl/8 \\"x\\" tenant=acct_9"';
  expect(read({ format: 'combined' }, line)).toEqual(ENTRY);
  expect(read({ format: 'combined', accountPattern: RE2JS.compile('tenant=(\\w+)') }, line)).toMatchObject({
    account: 'acct_9',
  });
  const named = RE2JS.compile('(tenant)=(?<account>\\w+)');
  expect(read({ format: 'combined', accountPattern: named }, line)).toMatchObject({ account: 'acct_9' });
  expect(read({ format: 'combined' }, line.replace('acct_1', '-'))).toBe('anonymous');
  expect(read({ format: 'combined' }, line.replace('" 200', '" 401'))).toBe('uncharged');
  expect(read({ format: 'combined' }, line.replace('GET', 'OPTIONS'))).toBe('uncharged');
  expect(read({ format: 'combined' }, 'nonsense')).toEqual({ problem: 'is not a line of this format' });
});

it.each(['"\\" ', '"a\\ ', '" ', 'a'])('a line of strangers in linear time: %s', (part) => {
  expectLinearTime((size) => {
    const line = part.repeat(size);
    return () => [
      read({ format: 'combined' }, line),
      read({ format: 'alb', mapping: mapped('account=.elb') }, line),
    ];
  }, 500);
});

it('the Account by a pattern that would backtrack, in linear time', () => {
  const accountPattern = RE2JS.compile('(?:\\w+ ?)+=(\\w+)');
  expectLinearTime((size) => {
    const line = `- - - [20/Nov/2026:13:00:00 +0100] "GET / HTTP/1.1" 200 512 "-" "${'a'.repeat(size)}"`;
    return () => expect(read({ format: 'combined', accountPattern }, line)).toBe('anonymous');
  }, 500);
});

it("Envoy's JSON", () => {
  const line = JSON.stringify({
    start_time: '2026-11-20T12:00:00.000Z',
    method: 'GET',
    path: '/v3/things',
    response_code: 200,
    duration: 12,
    x_account: 'acct_1',
  });
  expect(read({ format: 'envoy', mapping: mapped('account=.x_account') }, line)).toEqual(ENTRY);
  expect(() => read({ format: 'envoy' }, line)).toThrow('has no field for the Account');
});

it('the access log of an Application Load Balancer', () => {
  const line =
    'https 2026-11-20T12:00:01.500000Z app/my/50dc6 192.0.2.1:2817 10.0.0.1:80 0.086 0.048 0.037 200 200 0 57 ' +
    '"GET https://acct_1.example.com:443/v3/things?x=1 HTTP/1.1" "curl/7.46.0" ECDHE TLSv1.2 arn:aws:x "Root=1-58337281" ' +
    '"acct_1.example.com" "arn:aws:acm" 1 2026-11-20T12:00:00.000000Z "authenticate,forward" "-" "-"';
  const accountPattern = RE2JS.compile('https://(\\w+)\\.example');
  expect(read({ format: 'alb', accountPattern }, line)).toEqual(ENTRY);
  expect(read({ format: 'alb', mapping: mapped('account=.domain_name') }, line)).toMatchObject({
    account: 'acct_1.example.com',
  });
  const finder = {
    find(method: string, path: string) {
      expect([method, path]).toEqual(['GET', '/v3/things?x=1']);
      return { ...ENTRY.operation, cost: 5 };
    },
    named: () => undefined,
  };
  expect(read({ format: 'alb', accountPattern, finder }, line)).toMatchObject({ cost: 5 });
});

it.each([
  ['2026-11-20T12:00:00Z', AT_US],
  ['2026-11-20T12:00:00.123456Z', AT_US + 123_456],
  ['2026-11-20T13:00:00.5+01:00', AT_US + 500_000],
  ['20/Nov/2026:12:00:00 +0000', AT_US],
  [AT_US / 1e6, AT_US],
  [AT_US / 1e3 + 0.25, AT_US + 250],
  [AT_US, AT_US],
  [`${AT_US / 1e6}.25`, AT_US + 250_000],
  ['yesterday', undefined],
  [null, undefined],
])('the time %s', (written, expected) => {
  expect(timeUs(written)).toBe(expected);
});

it('an invalid mapping is reported in one sentence, and missing information of a foreign log in a note', async () => {
  const line = (second: number) =>
    `203.0.113.9 - acct_1 [20/Nov/2026:12:00:0${second} +0000] "GET /v3/things HTTP/1.1" 200 512 "-" "curl/8"\n`;
  const files = await writeFiles({
    log: line(1) + line(1) + line(2),
    limits: 'defaults: { account-read: 1 }',
  });
  const wrong = await runReplayCommand(files.log, '--limits', files.limits, '--map', 'acount=.x');
  expect(wrong.code).toBe(1);
  expect(wrong.stderr).toContain('does not start with one of time,');
  const { stdout } = await runReplayCommand(
    files.log,
    '--limits',
    files.limits,
    '--format',
    'combined',
    '--json',
  );
  const result = JSON.parse(stdout) as { requests: number; refused: { after: number }; notes: string[] };
  expect(result).toMatchObject({ requests: 3, refused: { after: 1 } });
  expect(result.notes.join('\n')).toContain('whole seconds');
  expect(result.notes.join('\n')).toContain('Each request costs 1 point');
});

it('a cost in the log is charged, and one that no request can have is reported with its line', async () => {
  const line = (more: object) =>
    `${JSON.stringify({ time: '2026-11-20T12:00:00Z', method: 'GET', path: '/', status: 200, account: 'a', ...more })}\n`;
  const costs = [{ cost: 7 }, {}, { cost: '2' }, { cost: 0 }, { cost: 2.5 }, { cost: 1e15 }];
  const log = [...costs, { method: 'constructor' }, { method: '__proto__' }].map(line).join('');
  const files = await writeFiles({ log, limits: '{}' });
  const { stdout } = await runReplayCommand(
    files.log,
    ...['--limits', files.limits, '--format', 'json', '--json'],
  );
  const result = JSON.parse(stdout) as ReplayResult;
  const problem = 'has no whole number of points at .cost';
  expect(result).toMatchObject({
    requests: 3,
    uncharged: 3,
    unreadableLines: [
      { line: 5, problem },
      { line: 6, problem },
    ],
    buckets: [{ requests: 3, points: 10 }],
  });
  expect(result.notes.join('\n')).not.toContain('Each request costs 1 point');
});

it.each([
  1e308,
  -1e308,
  1e17 * 1e3,
  '1e308',
  '9'.repeat(400),
  '+275760-09-13T00:00:00Z',
  '-000001-01-01T00:00:00Z',
  Number.NaN,
  'request 5',
  '-5',
  '2026-02-30T12:00:00Z',
  '2026-11-31 12:00:00Z',
  '31/Feb/2026:12:00:00 +0000',
])('a time that no log has is no time: %s', (time) => {
  expect(timeUs(time)).toBeUndefined();
});

it('a pattern without a group is refused, because it finds no Account', async () => {
  const files = await writeFiles({ log: '\n', limits: '{}' });
  const flags = ['--limits', files.limits, '--format', 'combined', '--account-pattern', 'tenant'];
  const { code, stderr } = await runReplayCommand(files.log, ...flags);
  expect(code).toBe(1);
  expect(stderr).toBe(
    '--account-pattern needs a group around the Account, such as tenant=(\\w+): tenant has none.\n',
  );
});

it('a duration that cannot be right does not move the charge', () => {
  const mapping = mapped('time=.t,method=.m,account=.a,durationSeconds=.d');
  for (const d of [1e308, -1e308, '1e999', 'x']) {
    const line = JSON.stringify({ t: AT_US / 1e6, m: 'GET', a: 'acct_1', d });
    expect(read({ mapping }, line)).toEqual(ENTRY);
  }
});

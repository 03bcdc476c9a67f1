import { pino } from 'pino';
import { expect, it } from 'vitest';
import { Refusal } from '../../../../src/domain/problems.ts';
import { LimitEvents } from '../../../../src/observe/log/events.ts';
import type { Charged, RequestContext } from '../../../../src/stages/request-context.ts';
import { requestOf } from '../../../fixtures/request-context.ts';

const MINUTE_MS = 60_000;

interface Line {
  readonly msg: string;
  readonly account?: string;
  readonly bucket: string;
}

function start() {
  const lines: Line[] = [];
  const events = new LimitEvents(pino({}, { write: (line) => lines.push(JSON.parse(line) as Line) }));
  return { lines, events };
}

function request(account: string, charged: Charged): RequestContext {
  const owned = charged.outcome === 'denied' ? { ...charged, owner: account } : charged;
  return Object.assign(requestOf(account, 'org_1'), { charged: owned });
}

const denied: Charged = {
  outcome: 'denied',
  policy: '',
  rateLimit: '',
  bucket: 'account-read',
  owner: 'acct_1',
  limit: 5,
  windowSeconds: 1,
  remaining: 2,
  retryAfterUs: 1500,
  refusal: new Refusal('RateLimitExceeded', ''),
};

const near: Charged = {
  outcome: 'admitted',
  policy: '',
  rateLimit: '',
  nearLimit: (['account-read', 'organization-read'] as const).map((bucket) => ({
    bucket,
    owner: bucket === 'account-read' ? 'acct_1' : 'org_1',
    limit: 20,
    windowSeconds: 1,
    remaining: 1,
  })),
  shadowDenied: undefined,
};

it('an Account and bucket have one line of each event a minute', () => {
  const { lines, events } = start();
  for (const atMs of [0, 1, MINUTE_MS - 1]) {
    events.requestFinished(request('acct_1', denied), atMs);
    events.requestFinished(request('acct_1', near), atMs);
  }
  events.requestFinished(request('acct_2', denied), MINUTE_MS - 1);
  expect(lines.map(({ msg, account, bucket }) => `${msg} ${account} ${bucket}`)).toEqual([
    'limit.exceeded acct_1 account-read',
    'limit.near acct_1 account-read',
    'limit.near acct_1 organization-read',
    'limit.exceeded acct_2 account-read',
  ]);
  expect(lines[0]).toMatchObject({ limit: 5, windowSeconds: 1, remaining: 2, retryAfterMs: 1.5 });
  lines.length = 0;
  events.requestFinished(request('acct_1', denied), MINUTE_MS);
  expect(lines).toHaveLength(1);
});

it('remembers a bounded number of Accounts, and says once a minute that there are more', () => {
  const { lines, events } = start();
  const flood = (from: number, atMs: number) => {
    for (let index = 0; index < 6_000; index++)
      events.requestFinished(request(`acct_${from + index}`, denied), atMs);
  };
  flood(0, 0);
  const countOf = (msg: string) => lines.filter((line) => line.msg.startsWith(msg)).length;
  expect(countOf('limit.exceeded')).toBe(5_000);
  expect(countOf('more Accounts')).toBe(1);
  flood(0, MINUTE_MS - 1);
  expect(lines).toHaveLength(5_001);
  flood(6_000, MINUTE_MS);
  expect(countOf('limit.exceeded')).toBe(10_000);
  expect(countOf('more Accounts')).toBe(2);
});

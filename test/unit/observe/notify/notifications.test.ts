import { pino } from 'pino';
import { expect, it } from 'vitest';
import { pace } from '../../../../src/domain/pace.ts';
import { Notifications } from '../../../../src/observe/notify/notifications.ts';
import type { Filling } from '../../../../src/stages/buckets/payer-bucket.ts';
import type { RequestContext } from '../../../../src/stages/request-context.ts';
import { requestOf } from '../../../fixtures/request-context.ts';

const HOUR_MS = 3_600_000;

function filled(): RequestContext {
  const request = requestOf('acct_1');
  const filling: Filling = {
    bucket: 'account-hour',
    limit: 100,
    windowSeconds: 3_600,
    percent: 80,
    scope: 'account',
    owner: 'acct_1',
    counts: 'points',
    remaining: 20,
    lastsMs: HOUR_MS,
  };
  return Object.assign(request, { charged: { ...request.charged, filling: [filling] } });
}

/** Notifications that are lines of the log. Redis runs each claim; its answer may be lost. */
function open(isAnswered: boolean) {
  const events: unknown[] = [];
  const notifications = new Notifications({
    claims: {
      async claim(_, lifeMs) {
        events.push(`claimed for ${lifeMs}`);
        if (!isAnswered) throw new Error('Connection is closed.');
        return true;
      },
      async keep(_, lifeMs) {
        events.push(`kept for ${lifeMs}`);
      },
      close() {},
    },
    deliveries: undefined,
    observer: { notified: (outcome) => void events.push(outcome), showNotifications() {} },
    log: pino({}, { write: (line: string) => void events.push(JSON.parse(line).msg) }),
    isLogged: true,
    nowMs: Date.now,
  });
  return { notifications, events };
}

it('a claim lasts for seconds until the line is written, and then for the window', async () => {
  const { notifications, events } = open(true);
  notifications.requestFinished(filled());
  await notifications.close();
  expect(events).toEqual([`claimed for ${pace.claimMs}`, 'limit.reached', `kept for ${HOUR_MS}`]);
});

it('a claim whose answer was lost keeps nobody from reporting later', async () => {
  const { notifications, events } = open(false);
  notifications.requestFinished(filled());
  await notifications.close();
  expect(events.slice(0, 2)).toEqual([`claimed for ${pace.claimMs}`, 'unclaimed']);
  expect(events).not.toContain('limit.reached');
});

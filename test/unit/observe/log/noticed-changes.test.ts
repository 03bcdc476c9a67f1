import { pino } from 'pino';
import { expect, test } from 'vitest';
import { asChange } from '../../../../src/admin/history/change.ts';
import { matching } from '../../../../src/facts/message-bounds.ts';
import type { Difference } from '../../../../src/observe/log/difference-text.ts';
import { Changes, type KeptChange, noticedChange } from '../../../../src/observe/log/noticed-changes.ts';

test.each<[Difference, string]>([
  [
    { change: 'changed', id: 'acct_7', bucket: 'account-read', from: { limit: 500 }, to: { limit: 5_000 } },
    'account-read of acct_7 500 -> 5000',
  ],
  [
    {
      change: 'added',
      id: 'acct_7',
      bucket: 'account-read',
      from: { limit: 500 },
      to: { limit: 800, until: '2026-11-28T05:37:15.811Z' },
    },
    'account-read of acct_7 500 -> 800 until 2026-11-28 05:37:15 UTC',
  ],
  [
    { change: 'changed', bucket: 'account-read', from: { limit: 500 }, to: { limit: 5_000 } },
    'account-read 500 -> 5000',
  ],
  [
    { change: 'changed', id: 'org_1', from: { periodStartsOn: 31 }, to: { periodStartsOn: 3 } },
    'org_1 periodStartsOn 31 -> periodStartsOn 3',
  ],
  [{ change: 'added', id: 'org_1', to: { plan: 'pro' } }, 'org_1 added (plan pro)'],
  [{ change: 'removed', what: 'token', id: 'sha256:817744ff' }, 'token sha256:817744ff removed'],
  [
    { change: 'changed', operation: 'listThings', from: { cost: 1 }, to: { cost: 5 } },
    'listThings 1 point -> 5 points',
  ],
  [
    { change: 'changed', plan: 'pro', bucket: 'account-read', from: { limit: 2_000 }, to: { limit: 5_000 } },
    'account-read of plan pro 2000 -> 5000',
  ],
  [
    {
      change: 'changed',
      bucket: 'm',
      from: { per: 'account', period: { unit: 'month', timeZone: 'UTC', startsOn: 1 } },
      to: { per: 'account', period: { unit: 'month', timeZone: 'UTC', startsOn: 15 } },
    },
    'm startsOn 1 -> startsOn 15',
  ],
  [
    {
      change: 'changed',
      bucket: 'm',
      from: { windowSeconds: 60 },
      to: { windowSeconds: 604_800, period: { unit: 'week', timeZone: 'UTC', startsOn: 'monday' } },
    },
    'm windowSeconds 60 -> windowSeconds 604800 period week timeZone UTC startsOn monday',
  ],
  [
    {
      change: 'changed',
      operation: 'listThings',
      from: { cost: 1, tags: ['big'], validate: 'body' },
      to: { cost: 1 },
    },
    'listThings tags big validate body -> no tags or validate',
  ],
  [
    { change: 'changed', bucket: 'search', from: { limit: 5, shadow: true }, to: { limit: 5 } },
    'search shadow true -> no shadow',
  ],
  [
    { change: 'changed', what: 'principal', id: 'svc_1', from: { actsFor: [] }, to: { actsFor: ['acct_2'] } },
    'principal svc_1 no actsFor -> actsFor acct_2',
  ],
])('a change of %j is listed as %s', (difference, text) => {
  const changes = new Changes(pino({ enabled: false }), Date.now);
  changes.info({ difference: [difference] }, 'limits.changed');
  expect(changes.latest[0]?.text).toBe(text);
});

test('the subject is the plan, and a changed window is named with the number of further changes', () => {
  const changes = new Changes(pino({ enabled: false }), Date.now);
  const kept: KeptChange[] = [];
  changes.onNoticed = (change) => void kept.push(change);
  const difference = [
    { change: 'changed', plan: 'pro', bucket: 'account-read', from: { limit: 2_000 }, to: { limit: 5_000 } },
  ] as const;
  changes.info({ difference }, 'limits.changed');
  const windowSeconds = { from: 1, to: 60 };
  changes.info({ difference: [], windowSeconds }, 'limits.changed');
  changes.info({ difference, windowSeconds, omitted: 3 }, 'limits.changed');
  expect(kept).toMatchObject([
    { subject: 'pro', text: 'account-read of plan pro 2000 -> 5000' },
    { subject: null, text: 'windowSeconds 1 -> 60' },
    { subject: null, text: 'windowSeconds 1 -> 60, account-read of plan pro 2000 -> 5000, 3 more' },
  ]);
  expect(changes.latest.map(({ count }) => count).sort()).toEqual([1, 1, 5]);
});

test('the text of what is kept leaves the owner of one limit to the subject, which replicas do not publish', () => {
  const changes = new Changes(pino({ enabled: false }), Date.now);
  const kept: KeptChange[] = [];
  changes.onNoticed = (change) => void kept.push(change);
  const ofOwner = (id: string) =>
    ({ change: 'changed', id, bucket: 'account-read', from: { limit: 500 }, to: { limit: 5_000 } }) as const;
  changes.info({ difference: [ofOwner('acct_7')], why: 'launch', by: 'alice' }, 'limits.changed');
  changes.info({ difference: [ofOwner('acct_7'), ofOwner('acct_8')] }, 'limits.changed');
  changes.info(
    { id: 'acct_7', difference: [ofOwner('acct_7'), { ...ofOwner('acct_7'), bucket: 'tokens' }] },
    'limits.changed',
  );
  const both = 'account-read of acct_7 500 -> 5000, account-read of acct_8 500 -> 5000';
  expect(kept).toMatchObject([
    { subject: 'acct_7', text: 'account-read 500 -> 5000', by: 'alice', why: 'launch' },
    { subject: null, text: both },
    { subject: 'acct_7', text: 'account-read 500 -> 5000, tokens 500 -> 5000' },
  ]);
  const published = changes.latest.map(({ text }) => text).sort();
  expect(published).toEqual([
    both,
    'account-read of acct_7 500 -> 5000, tokens of acct_7 500 -> 5000',
    'account-read of acct_7 500 -> 5000: launch (alice)',
  ]);
});

test.each<[string, Partial<Difference>]>([
  ['with half of a surrogate pair at its cut', { operation: `${'a'.repeat(298)}😀 and more` }],
  ['with a direction mark and a control character', { operation: 'list\u202e\u0007things' }],
  ['of thousands of characters', { operation: '😀'.repeat(3_000) }],
  ['with half of a surrogate pair in a value', { id: 'org_1', to: { plan: '\ud83d' } }],
])('no text %s is published that others refuse', (_, named) => {
  const changes = new Changes(pino({ enabled: false }), Date.now);
  const kept: KeptChange[] = [];
  changes.onNoticed = (change) => void kept.push(change);
  changes.info({ difference: [{ change: 'added', ...named }] }, 'operations.changed');
  expect(matching(noticedChange)(changes.latest[0])).toEqual(changes.latest[0]);
  expect(asChange(kept[0])).toEqual(kept[0]);
});
